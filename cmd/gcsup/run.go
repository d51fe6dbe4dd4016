package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/metrics"
	"gcsup/internal/cli/page"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/result"
	"gcsup/internal/cli/runlog"
	"gcsup/internal/cli/screen"
	"gcsup/internal/congestion"
	"gcsup/internal/grace"
	"gcsup/upload"
)

// reporter runs uploads and reports about them. Each of its parts has one task.
type reporter struct {
	commandLine
	flags   outputFlags
	view    view
	console *screen.Console // messages for people
	results *results        // standard output
	explain *explainer
	tracker *tracker
	totals  result.Totals

	pages  *page.Recorder // of --report; nil without
	opened bool           // the page can be written

	metrics *metrics.Metrics // of --listen; nil without
	server  *metrics.Server  // of these metrics; nil until it is open
}

func newReporter(std stdio, flags outputFlags, line commandLine) *reporter {
	r := &reporter{
		commandLine: line, flags: flags, view: flags.progress.view(std, flags.quiet, flags.verbose), console: screen.NewQueuedConsole(std.err, flags.quiet, flags.verbose),
		results: &results{queue: runlog.NewQueue(std.out), json: flags.json, quiet: flags.quiet || flags.report == stdoutName},
		totals:  result.Totals{Start: time.Now()},
	}
	if screen.SameTerminal(std.out, std.err) {
		r.results.queue = runlog.NewQueue(r.console) // results appear above the frame, too
	}
	if flags.report != "" {
		r.pages = page.New(r.totals.Start)
	}
	if flags.listen != "" {
		r.metrics = metrics.New(metrics.Options{Version: version().Version, Backlog: flags.backlog})
	}
	lease, _ := line.given.GetDuration("state-lease") // 0 without the flag
	r.explain = &explainer{console: r.console, command: line}
	r.tracker = &tracker{results: r.results, console: r.console, pages: r.pages, lease: lease, files: newTrackedFiles()}
	return r
}

// open opens the files of --log-file and --report, and the port of --listen, before anything is sent.
func (r *reporter) open() error {
	if r.given.Changed("log-level") && r.flags.logFile == "" {
		return exit.Usagef("--log-level needs --log-file")
	}
	if r.flags.logFile == stdoutName {
		return exit.Usagef("--log-file: want the name of a file; --verbose writes a log to standard error")
	}
	if r.flags.logFile != "" {
		if err := r.console.Log().Open(r.flags.logFile, r.flags.logLevel.level); err != nil {
			return fmt.Errorf("--log-file: %w", err)
		}
		r.console.Log().Start(r.text(), version().Version)
	}
	if r.pages != nil {
		if err := r.flags.checkReport(); err != nil {
			return err
		}
		r.opened = true
	}
	if r.metrics != nil {
		var err error
		if r.server, err = metrics.Serve(r.flags.listen, r.metrics); err != nil {
			return err
		}
		r.console.Message("metrics are at http://%s/metrics", r.server.Addr())
	}
	return nil
}

// logger returns the logger for the library. It writes to standard error with
// --verbose, to the log file and to the report.
func (r *reporter) logger() *slog.Logger {
	var handlers []slog.Handler
	if r.flags.verbose {
		handlers = append(handlers, runlog.NewLines(r.console))
	}
	if h := r.console.Log().Handler(); h != nil {
		handlers = append(handlers, h)
	}
	if r.pages != nil {
		handlers = append(handlers, r.pages)
	}
	if len(handlers) == 0 {
		return nil
	}
	return slog.New(slog.NewMultiHandler(handlers...))
}

// observe receives the library's events.
func (r *reporter) observe(e upload.Event) {
	if r.metrics != nil {
		r.metrics.Observe(e)
	}
	r.tracker.observe(e)
}

// warn prints a warning about the saved uploads.
func (r *reporter) warn(text string) { r.console.Warning("%s", text) }

// warnOfName prints a warning about a destination that is usually a mistake.
func (r *reporter) warnOfName(destination string) {
	if text := emptyPart(destination); text != "" {
		r.warn("warning: " + text)
	}
}

// use makes the reporter report about the uploads of a connection.
func (r *reporter) use(c *connection) {
	if r.explain.endpoint != "" {
		return // a command may announce saved uploads before it uploads
	}
	r.explain.endpoint, r.explain.saved = c.endpoint, c.saved
	if name := c.options.CongestionControl; r.flags.verbose && name == congestion.Auto {
		r.console.Message("congestion control: %s", congestionText(name))
	}
}

// close ends the run, whose error was err: it prints the last line of JSON, writes
// the report, and waits until the output is written. It returns the error of the
// command.
func (r *reporter) close(err error) error {
	if r.server != nil {
		r.server.Close()
	}
	code := exit.OK
	if err != nil {
		code = exit.Classify(err).Code
		if own, ok := errors.AsType[exit.Printed](err); ok {
			code = int(own)
		} else {
			r.console.Log().Write(slog.LevelError, exit.Text(err), failureAttrs(err)...) // the caller prints it
		}
	}
	elapsed := time.Since(r.totals.Start)
	if r.opened {
		about := page.About{Command: r.text(), Version: version().Version, Totals: &r.totals, Elapsed: elapsed, Code: code}
		if perr := r.writeReport(r.pages.Render(about)); perr != nil {
			perr = fmt.Errorf("--report: %w", perr)
			if err == nil {
				err, code = perr, exit.Classify(perr).Code
			} else {
				r.console.Fail(perr.Error())
			}
		}
	}
	if r.flags.json {
		r.results.object("", r.totals.Summary(elapsed, code))
	}
	if ferr := r.flush(); err == nil {
		err = ferr
	}
	r.console.Log().End(code, elapsed)
	if lerr := r.console.Log().Close(); lerr != nil && err == nil {
		err = fmt.Errorf("--log-file: %w", lerr)
	}
	return err
}

// writeReport writes the page of --report.
func (r *reporter) writeReport(report []byte) error {
	if r.flags.report != stdoutName {
		return process.ReplaceFile(r.flags.report, report)
	}
	_, err := r.results.queue.Write(report)
	return err
}

// refuse reports tasks that cannot start, and returns err with a hint.
func (r *reporter) refuse(tasks []task, err error) error {
	for _, t := range tasks {
		r.totals.Add(result.Failed, nil, err)
		r.tracker.refuse(t, err)
	}
	return withHint(err, r.explain.endpoint)
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

// reportNotStarted reports the tasks, of n in all, that were not started because ctx
// is done.
func (r *reporter) reportNotStarted(ctx context.Context, left []task, n int) {
	if len(left) > 0 {
		_ = r.refuse(left, context.Cause(ctx))
		r.console.Fail(fmt.Sprintf("not started: %d of %s", len(left), readable.Plural(n, "source", "sources")))
	}
}

// stopWaiting drops output that is not read within grace.Output.
func (r *reporter) stopWaiting() {
	r.tracker.interrupt()
	go r.console.EndFrames() // a terminal that blocks must not delay the timer
	time.AfterFunc(grace.Output, func() {
		r.results.queue.Close()
		r.console.Close()
	})
}

// flush waits until the output is written, and returns the error of standard
// output.
func (r *reporter) flush() error {
	err := r.results.queue.Flush()
	r.console.Flush() // the queue of the results may write to the console
	if err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}

// showProgress shows d until stop is called, unless there is no progress to show. The line of
// a single file is also its summary.
func (r *reporter) showProgress(batch, single bool, d *screen.Display) (stop func(), stopped <-chan struct{}) {
	lines := r.view.results || single
	if r.view.progress == progressOff {
		r.tracker.start(batch, nil, lines)
		return r.tracker.stop, nil
	}
	r.tracker.start(batch, d, lines)
	end, stopped := r.view.start(r.console, d)
	return func() {
		r.tracker.stop()
		end()
	}, stopped
}

// outcomes returns what reports how the files of a run end.
func (r *reporter) outcomes(batch bool) *outcomes {
	return &outcomes{tracker: r.tracker, explain: r.explain, console: r.console, totals: &r.totals, batch: batch}
}

// ended waits until the output is written, and returns the error of a run with that exit code.
func (r *reporter) ended(code int) error {
	if err := r.flush(); err != nil {
		return err
	}
	if code != exit.OK {
		return exit.Printed(code)
	}
	return nil
}
