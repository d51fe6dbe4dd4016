package process_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"gcsup/internal/cli/process"
	"gcsup/internal/require"
)

// TestSignalAfterRun checks that a signal does not kill a process whose command has ended.
func TestSignalAfterRun(t *testing.T) {
	const env = "GCSUP_TEST_SIGNAL_AFTER_RUN"
	if os.Getenv(env) != "" {
		process.Run(func(context.Context) int { return 0 })
		runtime.LockOSThread() // a signal to the own thread arrives before Tgkill returns
		require.NoError(t, unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGINT))
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), env+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
