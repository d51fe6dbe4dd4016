package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gcsup/fakegcs"
	"gcsup/fleet/internal/fleet"
	"gcsup/fleet/internal/natsserver"
	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
)

// upFlags configure a fleet on one machine.
type upFlags struct {
	work     workFlags
	workers  int
	emulator bool
}

func newUp(std stdio) *cobra.Command {
	f := &upFlags{}
	cmd := &cobra.Command{
		Use:   "up [--workers N]",
		Short: "Run a server and workers on this machine",
		Long: `up runs a NATS server on 127.0.0.1 with a random token, and workers, as processes on this
machine. The other commands find the server by --fleet-dir. A worker that dies is started
again. With --emulator nothing leaves the machine.`,
		Args: cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.work.stopped(cmd.Context(), f.run(cmd.Context(), cmd.Flags(), std))
		},
	}
	f.work.add(cmd.Flags())
	cmd.Flags().IntVar(&f.workers, "workers", 3, "run `N` workers")
	cmd.Flags().BoolVar(&f.emulator, "emulator", false, "run an emulator of Cloud Storage, which keeps objects in --fleet-dir")
	cmdline.Common(cmd.Flags(), "workers", "emulator")
	return cmd
}

// state returns the flags of the saved uploads. With --state and no key, it creates a key in dir, which the caller
// has locked. All workers on this machine can read it.
func (f *upFlags) state(dir string) (stateFlags, error) {
	s := f.work.state
	if s.url == "" && f.emulator {
		s.url = "gs://gcsup-state/uploads"
	}
	if s.url == "" || s.keyFile != "" || s.unsealed {
		return s, nil
	}
	s.keyFile = filepath.Join(dir, "state.key")
	if _, err := os.Lstat(s.keyFile); !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	return s, process.ReplaceFile(s.keyFile, key)
}

func (f *upFlags) run(ctx context.Context, given *pflag.FlagSet, std stdio) (err error) {
	n := &f.work.nats
	switch {
	case n.url != "":
		return exit.Usagef("up runs a NATS server: with --nats, start gcsup-fleet work on each machine")
	case f.workers < 1:
		return exit.Usagef("--workers %d: want 1 or more", f.workers)
	}
	queue, err := n.queueOptions()
	if err != nil {
		return err
	}
	dir, err := n.directory()
	if err != nil {
		return err
	}
	lock, err := lockDir(dir)
	if errors.Is(err, errLocked) {
		return fmt.Errorf("%w in %s: stop it, or give another --fleet-dir", err, dir)
	}
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	if f.work.state, err = f.state(dir); err != nil {
		return err
	}
	opts, err := f.work.options(std)
	if err != nil {
		return err
	}
	a := address{Token: newToken()}
	server, err := startServer(dir, -1, a.Token, opts.Logger, std)
	if err != nil {
		return err
	}
	defer server.Close()
	ctx, end := untilFailed(ctx, server.Failed())
	defer end()
	if err := createQueue(ctx, server, queue); err != nil {
		return err
	}
	a.URL, a.State = server.URL(), f.work.state.url
	if f.emulator {
		stop, endpoint, err := startEmulator(filepath.Join(dir, "emulator"), filepath.Join(dir, portFile))
		if err != nil {
			return err
		}
		defer stop()
		a.Endpoint = endpoint
		std.message("the emulator is at %s, and keeps its objects in %s", endpoint, filepath.Join(dir, "emulator"))
	}
	remove, err := writeAddress(dir, a)
	if err != nil {
		return err
	}
	defer remove()
	std.message("%d workers run; stop them with Ctrl-C, and see gcsup-fleet status", f.workers)
	return f.supervise(ctx, dir, given, std, func() bool { return empty(ctx, server, queue) })
}

// empty reports whether the queue has no tasks.
func empty(ctx context.Context, server *natsserver.Server, opts fleet.QueueOptions) bool {
	nc, err := server.Connect()
	if err != nil {
		return false
	}
	defer nc.Close()
	opts.AckWait, opts.MustExist = 0, true
	q, err := fleet.OpenQueue(ctx, nc, opts)
	if err != nil {
		return false
	}
	tasks, err := q.Tasks(ctx)
	return err == nil && tasks == 0
}

// createQueue creates the queue before another command can create it with a different
// ack wait.
func createQueue(ctx context.Context, server *natsserver.Server, opts fleet.QueueOptions) error {
	nc, err := server.Connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	if _, err = fleet.OpenQueue(ctx, nc, opts); err != nil {
		return err
	}
	return fleet.Redeliver(ctx, nc) // the workers of an earlier server have ended
}

// portFile is the file with the port of the emulator. The files in the queue were submitted to this
// endpoint, and the saved uploads have sessions there.
const portFile = "emulator.port"

// listenAgain listens on 127.0.0.1, on the port in a file. If that is not possible, it listens on a free
// port, and writes it to the file.
func listenAgain(file string) (net.Listener, error) {
	text, _ := os.ReadFile(file)
	if port, err := strconv.ParseUint(string(text), 10, 16); err == nil {
		if ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return ln, nil
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, fmt.Append(nil, ln.Addr().(*net.TCPAddr).Port), 0o600); err != nil {
		_ = ln.Close()
		return nil, err
	}
	return ln, nil
}

// startEmulator serves an emulator with its objects in dir, on the port in a file, see listenAgain.
func startEmulator(dir, file string) (stop func(), endpoint string, err error) {
	gcs, err := fakegcs.New(&fakegcs.Options{Dir: dir, CreateBuckets: true})
	if err != nil {
		return nil, "", err
	}
	ln, err := listenAgain(file)
	if err != nil {
		_ = gcs.Close()
		return nil, "", err
	}
	s := &http.Server{Handler: gcs, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(ln) }()
	return func() {
		_ = s.Close()
		_ = gcs.Close()
	}, "http://" + ln.Addr().String(), nil
}

// restartDelay is how long to wait before a worker that died is started again.
const restartDelay = 2 * time.Second

// supervise runs the workers until ctx is done, or until they end because the queue is empty. If a
// worker fails for a reason that would also stop the others, it stops them and returns that exit code
// as the error. empty reports whether the queue has no tasks.
func (f *upFlags) supervise(ctx context.Context, dir string, given *pflag.FlagSet, std stdio, empty func() bool) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := f.arguments(dir, given)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var workers sync.WaitGroup
	for i := range f.workers {
		workers.Go(func() {
			for ctx.Err() == nil {
				code, err := runWorker(ctx, self, args, std)
				switch {
				case ctx.Err() != nil:
				case err != nil:
					stop(err)
				case f.work.untilEmpty && code == exit.OK:
					return
				case f.work.untilEmpty && code == exit.Temporary && empty():
					stop(exit.Printed(code)) // the worker printed why the queue is not settled
				case code > exit.OK && code != exit.IO && code != exit.Temporary:
					stop(exit.Printed(code)) // every other worker fails in the same way
				default:
					std.message("worker %d ended with %d, and is started again", i+1, code)
					sleep(ctx, restartDelay)
				}
			}
		})
	}
	workers.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// arguments returns the arguments of a worker: the given flags that are for workers. They have no
// secrets, which are in files and in the environment.
func (f *upFlags) arguments(dir string, given *pflag.FlagSet) []string {
	args := []string{"work", "--fleet-dir=" + dir, "--state=" + f.work.state.url}
	if f.work.state.keyFile != "" {
		args = append(args, "--state-key-file="+f.work.state.keyFile)
	}
	given.Visit(func(flag *pflag.Flag) {
		switch flag.Name {
		case "workers", "emulator", "fleet-dir", "state", "state-key-file":
			return
		}
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			args = append(args, "--"+flag.Name+"="+v)
		}
	})
	return args
}

// runWorker runs a worker process and returns its exit code, or -1 if a signal ended
// it. If ctx is done, the worker gets SIGTERM and hands over its uploads.
func runWorker(ctx context.Context, self string, args []string, std stdio) (code int, err error) {
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stderr = std.err
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = fleet.EndsWithin + 4*time.Second // then it is killed
	endWithParent(cmd)
	err = cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); ok || err == nil {
		return cmd.ProcessState.ExitCode(), nil
	}
	return 0, err
}

// sleep waits for d, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
