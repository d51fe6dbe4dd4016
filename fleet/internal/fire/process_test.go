//go:build linux

package fire_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gcsup/internal/testprocess"
)

// start starts a program. It is killed at the end of the test.
func start(t *testing.T, env []string, program string, args ...string) *testprocess.Process {
	t.Helper()
	return startIn(t, "", nil, env, program, args...)
}

// startIn starts a program in a directory.
func startIn(t *testing.T, dir string, user *syscall.Credential, env []string, program string, args ...string) *testprocess.Process {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: user}
	cmd.Env = append(environment(), env...)
	return testprocess.Start(t, cmd)
}

// command runs a program to its end.
func command(t *testing.T, program string, args ...string) (out string, err error) {
	t.Helper()
	return result(start(t, nil, program, args...))
}

// result waits for the end of a command. It returns the standard output, and an error unless the exit
// code is 0.
func result(p *testprocess.Process) (out string, err error) {
	if p.WaitFor(time.Minute) != 0 {
		err = errors.New(p.Output())
	}
	return p.Stdout(), err
}

// environment returns the environment of the test, without the variables that configure
// the programs.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		for _, prefix := range []string{"GCSUP_", "GOOGLE_", "STORAGE_", "HTTP_PROXY=", "http_proxy=", "XDG_"} {
			if strings.HasPrefix(v, prefix) {
				return true
			}
		}
		return false
	})
}

// loopback returns an address of this machine that no other process uses, so that a
// server which is started again gets the same port.
func loopback() string {
	return fmt.Sprintf("127.%d.%d.%d", 2+rand.IntN(250), rand.IntN(256), 1+rand.IntN(254))
}

// await polls until a condition is true. It returns false after a time.
func await(limit time.Duration, is func() bool) bool {
	return poll(10*time.Millisecond, limit, is)
}

// poll is like await, for a condition that costs more: it waits for interval between the calls.
func poll(interval, limit time.Duration, is func() bool) bool {
	for deadline := time.Now().Add(limit); ; {
		if is() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(interval)
	}
}
