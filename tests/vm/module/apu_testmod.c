// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes the kernel say and do what the exporter must notice, for tests in a throw-away VM.
 *
 * /sys/kernel/debug/apu_testmod/command takes one command a write:
 *   print LEVEL TEXT     a record of the kernel, as pr_*() makes it
 *   devprint LEVEL TEXT  the same with the fields of a PCI device, as dev_*() makes it
 *   lock PID MS          holds the process's mmap_lock for writing until "release", at most MS; the
 *                        write lasts as long
 *   release              lets go of all locks, and of the readers of "wait"
 * /sys/kernel/debug/apu_testmod/wait is a file whose reader is in uninterruptible sleep until
 * "release", and then reads nothing.
 */
#include <linux/debugfs.h>
#include <linux/device.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/printk.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

static struct dentry *folder;
static DECLARE_WAIT_QUEUE_HEAD(released);
static atomic_t releases = ATOMIC_INIT(0);

/* "LEVEL TEXT"; points text at what follows the level. */
static int parse_level(char *arguments, char **text)
{
	if (arguments[0] < '0' || arguments[0] > '7' || arguments[1] != ' ')
		return -EINVAL;
	*text = arguments + 2;
	return arguments[0] - '0';
}

static int do_print(char *arguments)
{
	char *text;
	int level = parse_level(arguments, &text);

	if (level < 0)
		return level;
	/* printk() looks for the level in what it has formatted. */
	printk("%c%d%s\n", KERN_SOH_ASCII, level, text);
	return 0;
}

static int do_devprint(char *arguments)
{
	char *text;
	int level = parse_level(arguments, &text);
	struct pci_dev *device;

	if (level < 0)
		return level;
	device = pci_get_device(PCI_ANY_ID, PCI_ANY_ID, NULL);
	if (!device)
		return -ENODEV;
	/* Unlike dev_printk(), without a prefix: the text has the one it shall have. */
	dev_printk_emit(level, &device->dev, "%s\n", text);
	pci_dev_put(device);
	return 0;
}

static struct mm_struct *mm_of(pid_t number)
{
	struct pid *pid = find_get_pid(number);
	struct task_struct *task = get_pid_task(pid, PIDTYPE_PID);
	struct mm_struct *mm = NULL;

	put_pid(pid);
	if (task) {
		mm = get_task_mm(task);
		put_task_struct(task);
	}
	return mm;
}

static int do_lock(char *arguments)
{
	int before = atomic_read(&releases);
	struct mm_struct *mm;
	unsigned int ms;
	pid_t pid;

	if (sscanf(arguments, "%d %u", &pid, &ms) != 2)
		return -EINVAL;
	mm = mm_of(pid);
	if (!mm)
		return -ESRCH;
	mmap_write_lock(mm);
	wait_event_timeout(released, atomic_read(&releases) != before, msecs_to_jiffies(ms));
	mmap_write_unlock(mm);
	mmput(mm);
	return 0;
}

static int do_release(char *arguments)
{
	atomic_inc(&releases);
	wake_up_all(&released);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(char *arguments);
} commands[] = {
	{ "print", do_print },
	{ "devprint", do_devprint },
	{ "lock", do_lock },
	{ "release", do_release },
};

static int run_command(char *line)
{
	char *name = strsep(&line, " ");
	char none[] = "";
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); ++i)
		if (!strcmp(name, commands[i].name))
			return commands[i].run(line ? line : none);
	return -EINVAL;
}

static ssize_t command_write(struct file *file, const char __user *data, size_t size, loff_t *offset)
{
	char *line;
	int result;

	if (size > PAGE_SIZE)
		return -E2BIG;
	line = memdup_user_nul(data, size);
	if (IS_ERR(line))
		return PTR_ERR(line);
	/* The blanks at the end of a text are its own. */
	line[strcspn(line, "\n")] = '\0';
	result = run_command(line);
	kfree(line);
	return result ? result : size;
}

static ssize_t wait_read(struct file *file, char __user *data, size_t size, loff_t *offset)
{
	int before = atomic_read(&releases);

	wait_event(released, atomic_read(&releases) != before);
	return 0;
}

static const struct file_operations command_operations = {
	.owner = THIS_MODULE,
	.write = command_write,
};

static const struct file_operations wait_operations = {
	.owner = THIS_MODULE,
	.read = wait_read,
};

static int __init apu_testmod_init(void)
{
	folder = debugfs_create_dir("apu_testmod", NULL);
	/* Unsafe means: not guarded against removal while in use. The owner's count guards them. */
	debugfs_create_file_unsafe("command", 0200, folder, NULL, &command_operations);
	debugfs_create_file_unsafe("wait", 0400, folder, NULL, &wait_operations);
	return 0;
}

static void __exit apu_testmod_exit(void)
{
	debugfs_remove(folder);
}

module_init(apu_testmod_init);
module_exit(apu_testmod_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Kernel events on request, for tests of apu_exporter");
