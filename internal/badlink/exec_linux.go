package badlink

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// Exec replaces this process by a command in a network namespace. The file hosts, if it is
// not "", is its /etc/hosts. The command is killed if the process that started this one
// ends. Exec returns only if it fails.
func Exec(namespace, hosts string, command []string) error {
	runtime.LockOSThread()
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	f, err := os.Open(namespace)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return os.NewSyscallError("setns", err)
	}
	if hosts != "" {
		if err := mountHosts(hosts); err != nil {
			return err
		}
	}
	return &os.PathError{Op: "exec", Path: path, Err: unix.Exec(path, command, os.Environ())}
}

// mountHosts moves this thread to a mount namespace of its own, in which file is
// /etc/hosts.
func mountHosts(file string) error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make / private: %w", os.NewSyscallError("mount", err))
	}
	if err := unix.Mount(file, "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("%s on /etc/hosts: %w", file, os.NewSyscallError("mount", err))
	}
	return nil
}
