package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// absentCalls are system calls that no command needs, and that escape its confinement: keyrings of the user, memory
// that no limit counts, programs in the kernel, and namespaces, mounts and files by other ways than their names.
var absentCalls = []uint32{unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_SHMGET, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_PIVOT_ROOT,
	unix.SYS_SETNS, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_QUOTACTL, unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_FANOTIFY_INIT}

// denySockets denies the processes that this thread starts all sockets but those of its network
// namespace. Neither the namespace nor Landlock before version 9 denies sockets with a
// name in the file system, so the session bus and the key agents of a person would be
// reachable; and by AF_VSOCK the host of a virtual machine. Socket pairs that cannot be
// connected elsewhere are allowed. Without a network namespace no network socket is allowed.
func denySockets(network bool) error {
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
	program := []unix.SockFilter{{Code: load, K: architecture}, {Code: equal, Jt: 1, K: arch}, {Code: end, K: absent}, {Code: load, K: number}, {Code: atLeast, Jf: 1, K: x32}, {Code: end, K: absent}}
	for _, call := range absentCalls {
		program = append(program, unix.SockFilter{Code: equal, Jf: 1, K: call}, unix.SockFilter{Code: end, K: absent})
	}
	families := []unix.SockFilter{{Code: equal, Jt: 6, K: unix.AF_INET}, {Code: equal, Jt: 5, K: unix.AF_INET6}, {Code: equal, Jt: 4, Jf: 5, K: unix.AF_NETLINK}}
	if !network { // no family is free
		for i := range families {
			families[i].Jt = 7 - uint8(i)
		}
	}
	program = append(program, unix.SockFilter{Code: equal, Jt: 2, K: unix.SYS_SOCKET}, unix.SockFilter{Code: equal, Jt: 5, K: unix.SYS_SOCKETPAIR}, unix.SockFilter{Code: end, K: pass},
		unix.SockFilter{Code: load, K: arg})
	program = append(program, families...)
	program = append(program,
		// A pair of any other kind may be one of datagrams (a raw one is), and that can be connected anew.
		unix.SockFilter{Code: load, K: arg1}, unix.SockFilter{Code: and, K: kinds}, unix.SockFilter{Code: equal, Jt: 1, K: unix.SOCK_STREAM}, unix.SockFilter{Code: equal, Jf: 1, K: unix.SOCK_SEQPACKET},
		unix.SockFilter{Code: end, K: pass}, unix.SockFilter{Code: end, K: refuse})
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	runtime.KeepAlive(program)
	return nil
}
