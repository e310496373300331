package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sockets keeps what this thread starts from all sockets but those of its network
// namespace. Neither that nor Landlock before version 9 keeps it from those with a
// name in the file system, so the session bus and the agents of a person would be
// within reach; and by AF_VSOCK the host of a virtual machine. Pairs that cannot be
// led elsewhere are free.
func sockets() error {
	arch, ok := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64, "riscv64": unix.AUDIT_ARCH_RISCV64}[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("no filter for %s", runtime.GOARCH)
	}
	const (
		load, and                       = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
		equal, atLeast, end             = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, unix.BPF_RET | unix.BPF_K
		number, architecture, arg, arg1 = 0, 4, 16, 24                     // struct seccomp_data; little-endian
		kinds                           = 0xf                              // SOCK_TYPE_MASK: without the flags
		x32                             = 0x40000000                       // another table of the same calls
		pass                            = 0x7fff0000                       // SECCOMP_RET_ALLOW
		refuse                          = 0x00050000 | uint32(unix.EACCES) // SECCOMP_RET_ERRNO
		absent                          = 0x00050000 | uint32(unix.ENOSYS)
	)
	program := []unix.SockFilter{
		{Code: load, K: architecture}, {Code: equal, Jf: 16, K: arch},
		{Code: load, K: number}, {Code: atLeast, Jt: 14, K: x32}, {Code: equal, Jt: 13, K: unix.SYS_IO_URING_SETUP},
		{Code: equal, Jt: 2, K: unix.SYS_SOCKET}, {Code: equal, Jt: 5, K: unix.SYS_SOCKETPAIR}, {Code: end, K: pass},
		{Code: load, K: arg}, {Code: equal, Jt: 6, K: unix.AF_INET}, {Code: equal, Jt: 5, K: unix.AF_INET6}, {Code: equal, Jt: 4, Jf: 5, K: unix.AF_NETLINK},
		// A pair of any other kind may be one of datagrams (a raw one is), and that can be connected anew.
		{Code: load, K: arg1}, {Code: and, K: kinds}, {Code: equal, Jt: 1, K: unix.SOCK_STREAM}, {Code: equal, Jf: 1, K: unix.SOCK_SEQPACKET},
		{Code: end, K: pass}, {Code: end, K: refuse}, {Code: end, K: absent},
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	runtime.KeepAlive(program)
	return nil
}
