#!/usr/bin/python3
"""A service manager on a bus, which answers what the file that is its argument says.

    fake_systemd.py ADDRESS STATE CALLS

STATE is JSON and read at each call: {"mode": "answer" | "silent" | "garbage", "units": {ID: {...}},
"files": {PATH: STATE}, "properties": {ID: {NAME: VALUE}}}. A line for each call goes to CALLS. Debian's python3-dbus
and python3-gi.
"""
import json
import pathlib
import sys

import dbus
import dbus.bus
import dbus.lowlevel
import dbus.mainloop.glib
from gi.repository import GLib

NAME = "org.freedesktop.systemd1"
UNITS = "/org/freedesktop/systemd1/unit/"
SIZES = {"NRestarts": dbus.UInt32, "MainPID": dbus.UInt32}


def object_path(unit):
    return UNITS + "".join(c if c.isalnum() else f"_{ord(c):02x}" for c in unit)


def variant(name, value):
    if isinstance(value, bool):
        return dbus.Boolean(value)
    if isinstance(value, int):
        return SIZES.get(name, dbus.UInt64)(value)
    if name == "ExecStart":
        command = (value[0], dbus.Array(value, signature="s"), False, *[dbus.UInt64(0)] * 4, dbus.UInt32(0),
                   dbus.Int32(0), dbus.Int32(0))
        return dbus.Array([dbus.Struct(command, signature="sasbttttuii")], signature="(sasbttttuii)")
    if isinstance(value, list):
        return dbus.Array(value, signature="s")
    return value


class Manager:
    def __init__(self, connection, state, calls):
        self.connection, self.state, self.calls = connection, pathlib.Path(state), pathlib.Path(calls)
        connection.add_message_filter(self.on_message)

    def on_message(self, _connection, message):
        if not isinstance(message, dbus.lowlevel.MethodCallMessage) or message.get_destination() is None:
            return dbus.lowlevel.HANDLER_RESULT_NOT_YET_HANDLED
        state = json.loads(self.state.read_text())
        member = message.get_member()
        with self.calls.open("a") as calls:
            arguments = message.get_args_list()
            what = arguments[1] if member == "Get" else ""
            calls.write(f"{message.get_sender()} {message.get_auto_start()} {member} {what}\n")
        if state["mode"] != "silent":
            self.connection.send_message(self.answer(message, member, state))
        return dbus.lowlevel.HANDLER_RESULT_HANDLED

    def answer(self, message, member, state):
        answers = {"ListUnitsByPatterns": self.units, "ListUnitFilesByPatterns": self.files, "Get": self.property}
        if member not in answers:
            return dbus.lowlevel.ErrorMessage(message, "org.freedesktop.DBus.Error.UnknownMethod", member)
        reply = dbus.lowlevel.MethodReturnMessage(message)
        if state["mode"] == "garbage":
            reply.append(42, signature="u")
            return reply
        return answers[member](message, reply, state)

    def units(self, _message, reply, state):
        rows = [(unit, "", what["load"], what["active"], what["sub"], "", object_path(unit), 0, "", "/")
                for unit, what in state["units"].items()]
        reply.append(dbus.Array(rows, signature="(ssssssouso)"), signature="a(ssssssouso)")
        return reply

    def files(self, _message, reply, state):
        reply.append(dbus.Array(list(state["files"].items()), signature="(ss)"), signature="a(ss)")
        return reply

    def property(self, message, reply, state):
        _, name = message.get_args_list()
        for unit, properties in state["properties"].items():
            if object_path(unit) == message.get_path() and name in properties:
                reply.append(variant(name, properties[name]), signature="v")
                return reply
        return dbus.lowlevel.ErrorMessage(message, "org.freedesktop.DBus.Error.UnknownProperty", name)


def main():
    address, state, calls = sys.argv[1:]
    dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
    connection = dbus.bus.BusConnection(address)
    manager = Manager(connection, state, calls)
    connection.request_name(NAME)
    pathlib.Path(calls + ".ready").touch()
    loop = GLib.MainLoop()
    connection.call_on_disconnection(lambda _: loop.quit())
    loop.run()
    return manager


if __name__ == "__main__":
    main()
