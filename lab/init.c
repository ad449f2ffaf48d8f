// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The first process of the guest: prepares it, runs one command, tells how it ended, powers off.
 *
 * It talks to lab/run on the host through the files of the control folder. The command writes to
 * pipes, which are emptied here at once: what the command sees never depends on how fast the host
 * reads. Called by the kernel as its modprobe (so not as process 1), it is a modprobe that looks
 * for aqmkit's modules.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONTROL "/run/lab"
#define KIT CONTROL "/kit" /* our modules, as modprobe wants them */
#define KMEMLEAK "/sys/kernel/debug/kmemleak"
#define HEARTBEAT_SECONDS 1
/*
 * Virtual seconds to wait before looking for leaks: kmemleak spares what is younger than 5 s, and
 * the kernel complains after 10 s of a device that cannot go because someone holds on to it.
 */
#define SETTLE_SECONDS 12
#define CHUNK (64 << 10) /* bytes; what a pipe holds */

/* The job as lab/run wrote it. */
struct job {
	char *cwd;
	char *out; /* folder that can be written, "" for none */
	char **env;
	char **argv;
};

/* The kernel then panics, which shows lab/run its log with these words at the end. */
__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
	FILE *log = fopen("/dev/kmsg", "w");
	va_list args;

	if (log) {
		va_start(args, format);
		fputs("lab: ", log);
		vfprintf(log, format, args);
		fprintf(log, ": %s\n", strerror(errno));
		va_end(args);
		fclose(log);
	}
	_exit(1);
}

static void make_folder(const char *path, mode_t mode)
{
	if (mkdir(path, mode) && errno != EEXIST)
		die("mkdir %s", path);
	if (chmod(path, mode))
		die("chmod %s", path);
}

static void mount_on(const char *path, const char *type, const char *options)
{
	if (mount("none", path, type, MS_NOATIME, options))
		die("mount %s on %s", type, path);
}

/* Make the folders on the way that do not exist: they can only be on a tmpfs of ours. */
static void make_way(const char *path)
{
	char *way = strdup(path);

	for (size_t at = 1, end = strlen(way); at <= end; at++) {
		char kept = way[at];

		if (kept && kept != '/')
			continue;
		way[at] = '\0';
		/* A mkdir that fails would cost virtual time, the more the deeper DIR is. */
		if (access(way, F_OK))
			mkdir(way, 0755);
		way[at] = kept;
	}
	free(way);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_SYNC, 0644);

	if (fd < 0 || write(fd, text, strlen(text)) < 0 || close(fd))
		die("write %s", path);
}

static void loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (ioctl(fd, SIOCSIFFLAGS, &request))
		die("lo up");
	close(fd);
}

static void prepare(void)
{
	mount_on("/dev", "devtmpfs", "mode=755");
	make_folder("/dev/pts", 0755);
	mount_on("/dev/pts", "devpts", "ptmxmode=666,mode=620");
	make_folder("/dev/shm", 01777);
	mount_on("/dev/shm", "tmpfs", "mode=1777");
	if (symlink("/proc/self/fd", "/dev/fd") || symlink("fd/0", "/dev/stdin") ||
	    symlink("fd/1", "/dev/stdout") || symlink("fd/2", "/dev/stderr"))
		die("links in /dev");
	mount_on("/proc", "proc", NULL);
	mount_on("/sys", "sysfs", NULL);
	mount_on("/sys/kernel/debug", "debugfs", NULL);
	mount_on("/sys/kernel/tracing", "tracefs", NULL);
	mount_on("/sys/fs/cgroup", "cgroup2", NULL);
	mount_on("/run", "tmpfs", "mode=755");
	make_folder("/run/netns", 0755);
	make_folder("/run/lock", 01777);
	make_folder("/run/home", 0700);
	make_folder("/run/tmp", 01777);
	make_folder(CONTROL, 0755);
	mount_on(CONTROL, "hostfs", CONTROL);
	if (chdir(CONTROL)) /* and it stays ours, whatever the command does to the mounts */
		die("chdir %s", CONTROL);
	put("/proc/sys/kernel/modprobe", "/proc/1/exe");
	if (sethostname("lab", strlen("lab")))
		die("sethostname");
	loopback_up();
}

/* All of a file, a NUL behind it; its size in *size. */
static char *contents(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY);
	char *text = NULL;
	ssize_t got;

	if (fd < 0)
		die("open %s", path);
	*size = 0;
	do {
		text = realloc(text, *size + CHUNK + 1);
		got = read(fd, text + *size, CHUNK);
		if (!text || got < 0)
			die("read %s", path);
		*size += got;
	} while (got);
	text[*size] = '\0';
	close(fd);
	return text;
}

/* Strings that end in NUL: cwd, out, the environment, an empty one, the command. */
static struct job read_job(void)
{
	size_t size, count = 0;
	char *at = contents("job", &size);
	char *end = at + size;
	char **words = calloc(size + 1, sizeof(*words));
	struct job job;

	for (; at < end; at += strlen(at) + 1)
		words[count++] = at;
	job.cwd = words[0];
	job.out = words[1];
	job.env = words + 2;
	for (job.argv = job.env; **job.argv; job.argv++)
		;
	*job.argv++ = NULL;
	return job;
}

/* A pipe to the command, emptied into a file of the control folder. */
struct stream {
	int from, end, to;
};

static struct stream open_stream(const char *file)
{
	struct stream stream;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		die("pipe");
	stream.from = ends[0];
	stream.end = ends[1];
	stream.to = open(file, O_WRONLY | O_APPEND | O_SYNC | O_CLOEXEC);
	if (stream.to < 0)
		die("open %s", file);
	return stream;
}

/* Hand on what there is; false at the end of the stream. */
static bool hand_on(struct stream *stream)
{
	static char buffer[CHUNK];
	ssize_t got = read(stream->from, buffer, sizeof(buffer));

	for (ssize_t put = 0, done; put < got; put += done) {
		done = write(stream->to, buffer + put, got - put);
		if (done < 0)
			die("write output");
	}
	return got > 0;
}

/* Served at once, so that what a program prints before it hangs is seen. */
static void go_first(void)
{
	struct sched_param priority = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &priority))
		die("sched_setscheduler");
}

static pid_t start(const struct job *job, struct stream *out, struct stream *err)
{
	pid_t child = fork();
	sigset_t none;
	int status;

	if (child)
		return child;
	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
	dup2(out->end, STDOUT_FILENO);
	dup2(err->end, STDERR_FILENO);
	if (chdir(job->cwd))
		die("chdir %s", job->cwd);
	environ = job->env;
	execvp(job->argv[0], job->argv);
	status = errno == ENOENT ? 127 : 126; /* as a shell does */
	dprintf(STDERR_FILENO, "lab/run: %s: %s.\n", job->argv[0],
		errno == ENOENT ? "no such command" : strerror(errno));
	_exit(status);
}

static void beat(int fd)
{
	struct timespec now;
	char text[32];
	int length;

	clock_gettime(CLOCK_MONOTONIC, &now);
	length = snprintf(text, sizeof(text), "%10lld.%09ld\n", (long long)now.tv_sec, now.tv_nsec);
	if (pwrite(fd, text, length, 0) != length)
		die("write clock");
}

/* Serve the command until it ends; its wait status. */
static int serve(pid_t command, struct stream *out, struct stream *err, int signals)
{
	struct itimerspec period = { { HEARTBEAT_SECONDS, 0 }, { HEARTBEAT_SECONDS, 0 } };
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	int clock = open("clock", O_WRONLY | O_SYNC | O_CLOEXEC);
	struct pollfd wait[] = {
		{ .fd = out->from, .events = POLLIN },
		{ .fd = err->from, .events = POLLIN },
		{ .fd = timer, .events = POLLIN },
		{ .fd = signals, .events = POLLIN },
	};

	timerfd_settime(timer, 0, &period, NULL);
	for (;;) {
		struct signalfd_siginfo signal;
		uint64_t beats;
		pid_t ended;
		int status;

		poll(wait, 4, -1);
		if (wait[0].revents)
			hand_on(out);
		if (wait[1].revents)
			hand_on(err);
		if (wait[2].revents && read(timer, &beats, sizeof(beats)) > 0)
			beat(clock);
		if (wait[3].revents && read(signals, &signal, sizeof(signal)) > 0)
			while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
				if (ended == command)
					return status;
	}
}

/* The debug kernel is asked whether anything was lost, once all namespaces have gone. */
static void find_leaks(void)
{
	DIR *names = opendir("/run/netns");
	struct dirent *name;
	size_t size;

	if (access(KMEMLEAK, W_OK))
		return;
	while (names && (name = readdir(names))) {
		char path[PATH_MAX];

		if (name->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/run/netns/%s", name->d_name);
		umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
	}
	sleep(SETTLE_SECONDS);
	/* What an object looked like must be seen twice before it counts as lost. */
	put(KMEMLEAK, "scan");
	put(KMEMLEAK, "scan");
	put("leaks", contents(KMEMLEAK, &size));
}

int main(int argc, char **argv)
{
	struct stream out, err;
	sigset_t child;
	struct job job;
	char text[16];
	int status;
	pid_t command;

	if (getpid() != 1)
		return execl("/sbin/modprobe", "modprobe", "-d", KIT,
			     argv[1], argv[2], argv[3], NULL);
	(void)argc;
	prepare();
	job = read_job();
	if (*job.out) {
		make_way(job.out);
		mount_on(job.out, "hostfs", job.out);
	}
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	out = open_stream("out");
	err = open_stream("err");
	go_first();
	command = start(&job, &out, &err);
	status = serve(command, &out, &err, signalfd(-1, &child, SFD_CLOEXEC));
	kill(-1, SIGKILL);
	while (wait(NULL) > 0)
		;
	close(out.end);
	close(err.end);
	while (hand_on(&out))
		;
	while (hand_on(&err))
		;
	find_leaks();
	snprintf(text, sizeof(text), "%d",
		 WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
	put("status", text);
	sync();
	reboot(RB_POWER_OFF);
	die("power off");
}
