package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"gcsup/internal/cli/exitcode"
	"gcsup/internal/cli/failure"
	"gcsup/upload"
)

// reporter runs uploads one after the other and prints their events and results.
type reporter struct {
	out     *lineQueue
	console *console
	flags   outputFlags
	given   *pflag.FlagSet // for resumeCommand

	endpoint string     // in use, for hints
	saved    *lazyStore // nil if nothing is saved
	mu       sync.Mutex
	current  task
	batch    bool      // many uploads are under way, and current is not used
	active   bool      // current, or the batch, is under way
	stopping bool      // the command was interrupted: events of other files are late
	progress *progress // nil when quiet, and between runs
	totals   runTotals
	pages    *pageRecorder // of --report; nil without

	files reportedFiles
}

func newReporter(std stdio, flags outputFlags, given *pflag.FlagSet) *reporter {
	r := &reporter{
		out: newLineQueue(std.out), console: newQueuedConsole(std.err, flags.quiet), flags: flags, given: given,
		totals: runTotals{start: time.Now()}, files: reportedFiles{active: map[string]*fileState{}},
	}
	if sameTerminal(std.out, std.err) {
		r.out = newLineQueue(r.console) // results appear above the frame, too
	}
	return r
}

// open opens the files of --log-file and --report, before anything is sent.
func (r *reporter) open() error {
	if r.flags.logFile != "" {
		if err := r.console.openLog(r.flags.logFile); err != nil {
			return fmt.Errorf("--log-file: %w", err)
		}
	}
	if r.flags.report != "" {
		if err := checkWritable(r.flags.report); err != nil {
			return fmt.Errorf("--report: %w", err)
		}
		r.pages = newPageRecorder(r.totals.start)
	}
	return nil
}

// logger returns the logger for the library. It writes to standard error with
// --verbose, to the log file and to the report.
func (r *reporter) logger() *slog.Logger {
	var handlers []slog.Handler
	if r.flags.verbose {
		handlers = append(handlers, verboseLog{r.console})
	}
	if r.console.log != nil {
		handlers = append(handlers, r.console.log.Handler())
	}
	if r.pages != nil {
		handlers = append(handlers, &r.pages.exchanges)
	}
	if len(handlers) == 0 {
		return nil
	}
	return slog.New(slog.NewMultiHandler(handlers...))
}

// close ends the run, whose error was err: it prints the last line of JSON, writes
// the report, and waits until the output is written. It returns the error of the
// command.
func (r *reporter) close(err error) error {
	code := exitcode.OK
	if err != nil {
		code = failure.Classify(err).Code
		if own, ok := errors.AsType[exitcode.Printed](err); ok {
			code = int(own)
		} else {
			r.console.logError(err.Error()) // the caller prints it
		}
	}
	elapsed := time.Since(r.totals.start)
	if r.pages != nil {
		page := page{command: displayCommand(), totals: &r.totals, elapsed: elapsed, code: code}
		if perr := r.pages.write(r.flags.report, page); perr != nil {
			perr = fmt.Errorf("--report: %w", perr)
			if err == nil {
				err, code = perr, failure.Classify(perr).Code
			} else {
				r.console.fail(perr.Error())
			}
		}
	}
	if r.flags.json {
		r.print("", r.totals.line(elapsed, code))
	}
	if ferr := r.flush(); err == nil {
		err = ferr
	}
	if lerr := r.console.closeLog(); lerr != nil && err == nil {
		err = fmt.Errorf("--log-file: %w", lerr)
	}
	return err
}

// warn prints a warning about the saved uploads.
func (r *reporter) warn(text string) { r.console.message("%s", text) }

// use makes the reporter report about the uploads of a connection.
func (r *reporter) use(c *connection) {
	r.endpoint, r.saved = c.endpoint, c.saved
}

// run runs the tasks. A task that fails does not stop those after it; the exit
// code is that of the first failure. After an interruption the remaining tasks
// are not started.
func (r *reporter) run(ctx context.Context, c *connection, tasks []task) error {
	r.use(c)
	defer context.AfterFunc(ctx, r.stopWaiting)()
	code, done, stored := exitcode.OK, 0, false
	r.mu.Lock()
	r.startProgress(newDisplay(len(tasks)))
	if r.progress != nil && len(tasks) > 1 {
		total := int64(0)
		for _, t := range tasks {
			if t.err == nil {
				total += t.size
			}
		}
		r.progress.display.setTotals(int64(len(tasks)), total)
	}
	r.mu.Unlock()
	for _, t := range tasks {
		if ctx.Err() != nil {
			break
		}
		r.begin(t)
		var res *upload.Result
		err := t.err
		if err == nil {
			res, err = t.do(ctx)
		}
		err = sourceError(err, t.source)
		r.end(res, err)
		switch {
		case code != exitcode.OK:
		case err != nil && !t.skipped(err):
			code = failure.Classify(err).Code
		case res != nil && res.Leftover != nil:
			code = failure.Classify(res.Leftover).Code
		}
		stored = stored || err == nil
		done++
	}
	r.stopProgress()
	if stored && c.emulator != nil {
		r.console.message("%s", c.emulator.location())
	}
	if done < len(tasks) {
		if code == exitcode.OK {
			code = failure.Classify(context.Cause(ctx)).Code
		}
		r.reportNotStarted(ctx, tasks[done:], len(tasks))
	}
	r.printTotals(len(tasks))
	if err := r.flush(); err != nil {
		return err
	}
	if code != exitcode.OK {
		return exitcode.Printed(code)
	}
	return nil
}

// reportNotStarted reports the tasks, of n in all, that were not started because ctx
// is done.
func (r *reporter) reportNotStarted(ctx context.Context, left []task, n int) {
	if len(left) > 0 {
		_ = r.refuse(left, context.Cause(ctx))
		r.console.fail(fmt.Sprintf("not started: %d of %d sources", len(left), n))
	}
}

// refuse reports tasks that cannot start, and returns err with a hint.
func (r *reporter) refuse(tasks []task, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range tasks {
		r.totals.add(t.source, statusFailed, nil, err)
		if r.flags.json {
			r.print("", newResultLine(r.files.nextID(), t, statusFailed, nil, err))
		}
	}
	return withHint(err, r.endpoint)
}

// outputGrace is how long output may take after the command was interrupted.
const outputGrace = time.Second

// stopWaiting drops output that is not read within outputGrace.
func (r *reporter) stopWaiting() {
	r.mu.Lock()
	r.stopping = true
	r.mu.Unlock()
	go r.console.endFrames() // a terminal that blocks must not delay the timer
	time.AfterFunc(outputGrace, func() {
		r.out.close()
		r.console.queue.close()
	})
}

// flush waits until the output is written, and returns the error of standard
// output.
func (r *reporter) flush() error {
	err := r.out.flush()
	_ = r.console.queue.flush() // r.out may write to the console
	if err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}

// reportConnectError reports tasks that cannot run because there is no
// connection.
func (r *reporter) reportConnectError(ctx context.Context, tasks []task, err error) error {
	if !slices.ContainsFunc(tasks, func(t task) bool { return t.err != nil }) {
		return r.refuse(tasks, err) // one message for all
	}
	for i := range tasks {
		if tasks[i].err == nil {
			tasks[i].err = err
		}
	}
	return r.run(ctx, &connection{}, tasks)
}

// print queues a line of JSON. flush returns the error.
func (r *reporter) print(key string, line any) {
	if data, err := encodeLine(line); err == nil {
		_ = r.out.put(key, data)
	}
}
