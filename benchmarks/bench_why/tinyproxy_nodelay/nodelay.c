/* Preloaded into tinyproxy, which has no such setting: TCP_NODELAY on every TCP socket it opens or accepts. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

static int without_delay(int fd)
{
	int one = 1;
	if (fd >= 0) /* fails on what is no TCP socket, which is no harm */
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return fd;
}

int socket(int domain, int type, int protocol)
{
	int (*next)(int, int, int) = dlsym(RTLD_NEXT, "socket");
	return without_delay(next(domain, type, protocol));
}

int accept(int fd, struct sockaddr *address, socklen_t *length)
{
	int (*next)(int, struct sockaddr *, socklen_t *) = dlsym(RTLD_NEXT, "accept");
	return without_delay(next(fd, address, length));
}

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	int (*next)(int, struct sockaddr *, socklen_t *, int) = dlsym(RTLD_NEXT, "accept4");
	return without_delay(next(fd, address, length, flags));
}
