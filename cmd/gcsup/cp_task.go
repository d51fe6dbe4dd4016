package main

import (
	"context"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/result"
	"gcsup/internal/cli/screen"
	"gcsup/upload"
)

// run runs the tasks. A task that fails does not stop those after it; the exit
// code is that of the first failure. After an interruption the remaining tasks
// are not started.
func (r *reporter) run(ctx context.Context, c *connection, tasks []task) error {
	r.use(c)
	defer context.AfterFunc(ctx, r.stopWaiting)()
	code, done, stored := exit.OK, 0, false
	d := screen.NewDisplay(screen.Run{Work: screen.Uploading, Files: len(tasks), Parts: r.flags.verbose})
	if len(tasks) > 1 {
		total := int64(0)
		for _, t := range tasks {
			if t.err == nil {
				total += t.size
			}
		}
		d.SetTotals(int64(len(tasks)), total)
	}
	stop, _ := r.showProgress(false, len(tasks) == 1, d)
	out := r.outcomes(false)
	for _, t := range tasks {
		if ctx.Err() != nil {
			break
		}
		r.tracker.begin(t)
		var res *upload.Result
		err := t.err
		if err == nil {
			res, err = t.do(ctx)
		}
		err = sourceError(err, t.source)
		out.report(t, true, res, err)
		switch {
		case code != exit.OK:
		case err != nil && !t.skipped(err):
			code = exit.Classify(err).Code
		case result.Undone(res) != nil:
			code = exit.Classify(result.Undone(res)).Code
		}
		stored = stored || err == nil
		done++
	}
	stop()
	if stored && c.emulator != nil {
		r.console.Message("%s", c.emulator.location())
	}
	if done < len(tasks) {
		if code == exit.OK {
			code = exit.Classify(context.Cause(ctx)).Code
		}
		r.reportNotStarted(ctx, tasks[done:], len(tasks))
	}
	if len(tasks) > 1 {
		_ = r.results.queue.Flush() // ended returns the error
		r.console.Message("%s", r.totals.TextNow())
	}
	return r.ended(code)
}
