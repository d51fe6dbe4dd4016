package process

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"gcsup/internal/cli/exit"
	"gcsup/internal/grace"
)

// heapReserve is memory that is never used. The garbage collector starts when the heap, of
// which it is a part, has doubled. The heap of a command is often so small that the collector
// would take a tenth of the CPU time. The operating system provides no pages for the reserve.
const heapReserve = 16 << 20

// Run runs a command and returns its exit code. The first SIGINT, SIGTERM or SIGHUP
// cancels the context and waits for the command; a second one returns immediately.
// A SIGHUP that was ignored at the start, as by nohup, stays ignored.
// The signals stay caught after Run has returned: the process is about to exit with the code, and
// the second signal of timeout(1), which sends one to the process and one to its group, must not
// replace it.
func Run(command func(ctx context.Context) int) int {
	reserve := make([]byte, heapReserve)
	defer runtime.KeepAlive(reserve)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}

	// If a reader of the output exits, the write fails with an error. SIGPIPE
	// would end the upload. It is not ignored, because a child process would ignore it, too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	done := make(chan int, 1)
	go func() { done <- command(ctx) }()
	var first time.Time
	for {
		select {
		case code := <-done:
			return code
		case s := <-signals:
			switch {
			case first.IsZero():
				first = time.Now()
				cancel(exit.WithKind(fmt.Errorf("stopped by signal: %v", s), context.Canceled))
			case time.Since(first) > grace.Signal:
				return exit.Signal
			}
		}
	}
}
