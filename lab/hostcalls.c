// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Preloaded into the guest's kernel, which is a process of the host: puts itself between it and
 * the C library where the host would make a run unrepeatable, or a failure go unseen.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>
#include <errno.h>

static uint64_t state; /* of the generator: splitmix64 */

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/* Neighbouring seeds start at unrelated places of the generator's cycle. */
__attribute__((constructor)) static void seed(void)
{
	const char *given = getenv("AQM_LAB_SEED");

	state = mix(mix(given ? strtoull(given, NULL, 10) : 0) + 0x9e3779b97f4a7c15);
}

/* All randomness in the guest's kernel comes from here. */
ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
	unsigned char *at = buffer;
	size_t left = length;

	(void)flags;
	while (left) {
		uint64_t word = mix(state += 0x9e3779b97f4a7c15);
		size_t part = left < sizeof(word) ? left : sizeof(word);

		memcpy(at, &word, part);
		at += part;
		left -= part;
	}
	return length;
}

/*
 * The guest writes files of the host behind its page cache, and forgets errors when the file was
 * closed by then: a full disk would cut a result short in silence. lab/run finds this line.
 */
ssize_t pwrite64(int fd, const void *buffer, size_t length, off64_t offset)
{
	ssize_t done = syscall(SYS_pwrite64, fd, buffer, length, offset);
	int error = errno;

	if (done < (ssize_t)length)
		dprintf(STDERR_FILENO, "lab: a file could not be written: %s\n",
			done < 0 ? strerror(error) : "no space left");
	errno = error;
	return done;
}

/* Folders are read in the order of their names, whatever the host's file system and history. */
struct folder {
	struct dirent64 **entries;
	int count;
	int at;
};

DIR *opendir(const char *name)
{
	struct folder *folder = calloc(1, sizeof(*folder));

	if (!folder)
		return NULL;
	folder->count = scandir64(name, &folder->entries, NULL, alphasort64);
	if (folder->count < 0) {
		free(folder);
		return NULL;
	}
	return (DIR *)folder;
}

struct dirent64 *readdir64(DIR *dir)
{
	struct folder *folder = (struct folder *)dir;
	struct dirent64 *entry;

	if (folder->at >= folder->count)
		return NULL;
	entry = folder->entries[folder->at++];
	entry->d_off = folder->at;
	return entry;
}

void seekdir(DIR *dir, long position)
{
	((struct folder *)dir)->at = position;
}

int closedir(DIR *dir)
{
	struct folder *folder = (struct folder *)dir;

	for (int i = 0; i < folder->count; i++)
		free(folder->entries[i]);
	free(folder->entries);
	free(folder);
	return 0;
}
