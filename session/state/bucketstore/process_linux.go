package bucketstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// thisProcess returns the identity of this process. It is zero if the process cannot be identified,
// for example because /proc is not mounted, or is that of another PID namespace.
//
// Containers on one machine have the same boot ID, and different PID namespaces. The start of a
// process is relative to the time namespace of the reader. Numbers of namespaces are used again,
// but only after all processes of the earlier namespace have ended.
func thisProcess() process {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return process{}
	}
	pids, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return process{}
	}
	times, err := os.Readlink("/proc/self/ns/time")
	if err != nil {
		times = "" // the kernel has no time namespaces
	}
	stat, ok := readStat("self")
	if !ok || stat.pid != fmt.Sprint(os.Getpid()) {
		return process{}
	}
	place := strings.Join([]string{strings.TrimSpace(string(boot)), pids, times}, "/")
	return process{place, os.Getpid(), stat.started}
}

// ended reports whether a process of this place has ended.
func ended(p process) bool {
	stat, ok := readStat(fmt.Sprint(p.pid))
	if !ok {
		// With the mount option hidepid, /proc does not show the processes of other users.
		return errors.Is(syscall.Kill(p.pid, 0), syscall.ESRCH)
	}
	// The first thread of a process may end before the others.
	dead := (stat.state == "Z" || stat.state == "X") && stat.threads == "1"
	return dead || stat.started != p.started
}

// procStat has fields of /proc/PID/stat, see proc_pid_stat(5).
type procStat struct{ pid, state, threads, started string }

// readStat reads /proc/NAME/stat. ok is false if there is no such process, or if the file cannot be
// read.
func readStat(name string) (s procStat, ok bool) {
	text, err := os.ReadFile("/proc/" + name + "/stat")
	if err != nil {
		return s, false
	}
	// The second field is the name of the program in parentheses, which may contain any character.
	begin, end := bytes.IndexByte(text, ' '), bytes.LastIndexByte(text, ')')
	if begin < 0 || end < begin {
		return s, false
	}
	fields := strings.Fields(string(text[end+1:])) // from field 3 on
	if len(fields) < 20 {
		return s, false
	}
	return procStat{string(text[:begin]), fields[0], fields[17], fields[19]}, true
}
