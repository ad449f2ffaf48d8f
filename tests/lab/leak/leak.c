// SPDX-License-Identifier: GPL-2.0-or-later
/* Loses one piece of memory, which the debug kernel must find. */
#include <linux/module.h>
#include <linux/slab.h>

/* Not __init: its name must still be known when the loss is found. */
static noinline void lose_memory(void)
{
	pr_info("lost %p\n", kmalloc(100, GFP_KERNEL));
}

static int __init leak_init(void)
{
	lose_memory();
	return 0;
}
module_init(leak_init);

MODULE_DESCRIPTION("Test of the lab's search for memory leaks");
MODULE_LICENSE("GPL");
