"""What answers like a llama-server, or as badly as it is told to.

    fake_llama_server.py MODE...

Prints the port on which it listens. Lines of stdin change it: a MODE, "decode N", "asked" (prints what it was
asked for). Ends with stdin.
"""
import http.server
import json
import sys
import threading

SECRET = "kept-to-itself"  # stands where a real one has prompts
LOADING = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}


class State:
    def __init__(self, modes):
        self.modes = set(modes)
        self.decoded = None  # of the slot that is busy
        self.asked = []
        self.end = threading.Event()

    def argument_of(self, name):
        return next((mode[len(name):] for mode in self.modes if mode.startswith(name)), "")

    def slots(self):
        idle = {"id": 0, "n_ctx": 4096, "is_processing": False}
        if self.decoded is None:
            return [idle, {**idle, "id": 1}]
        return [idle, {"id": 1, "is_processing": True, "id_task": 7, "prompt": SECRET,
                       "params": {"stop": [SECRET], "n_decoded": 5},
                       "next_token": [{"n_decoded": self.decoded}], "generated": SECRET}]


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, status, body, **headers):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def flood(self):
        self.send_response(200)
        self.end_headers()
        block = (SECRET * 5000).encode()
        for _ in range(100_000_000 // len(block)):
            self.wfile.write(block)

    def flood_headers(self):
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        for number in range(1_000_000):
            self.wfile.write(b"X-%d: %s\r\n" % (number, SECRET.encode() * 50))

    def trickle(self):
        self.send_response(200)
        self.end_headers()
        while not self.state.end.wait(0.1):
            self.wfile.write(b" ")

    def do_GET(self):
        self.state.asked.append(self.path)
        try:
            self.respond(self.state.modes)
        except OSError:
            pass  # whoever asked has gone

    def respond(self, modes):
        prefix = self.state.argument_of("prefix-")
        if "hang" in modes or ("slots-hang" in modes and self.path == "/slots"):
            self.state.end.wait()
        elif "trickle" in modes:
            self.trickle()
        elif "close" in modes:
            self.close_connection = True
        elif "flood" in modes or ("slots-flood" in modes and self.path == "/slots"):
            self.flood()
        elif "headers" in modes:
            self.flood_headers()
        elif self.state.argument_of("redirect-"):
            port = self.state.argument_of("redirect-")
            self.answer(302, b"", Location=f"http://127.0.0.1:{port}/elsewhere")
        elif "slots-401" in modes and self.path == "/slots":
            self.answer(401, {"error": {"code": 401, "message": SECRET, "type": "authentication_error"}})
        elif "loading" in modes:
            self.answer(503, LOADING)
        elif self.path == prefix + "/health":
            self.answer(200, {"status": "ok"})
        elif self.path == prefix + "/slots":
            self.answer(200, self.state.slots())
        else:
            self.answer(404, {"error": {"code": 404, "message": "File Not Found"}})


def obey(state, command):
    if command.startswith("decode "):
        state.decoded = int(command.split()[1])
    elif command != "asked":
        state.modes = {command}
    print("done", flush=True)
    if command == "asked":
        print(state.asked, flush=True)


def main():
    Handler.state = State(sys.argv[1:])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    for line in sys.stdin:
        obey(Handler.state, line.strip())


main()
