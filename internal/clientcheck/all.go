package clientcheck

import (
	"cmp"
	"context"
)

// Result is the result of a script, with what the client and the server sent.
type Result struct {
	Script    Script
	Verdict   Verdict
	Exchanges []Exchange
}

// All checks a client with scripts, Options.Jobs at a time. It calls report for each, in their
// order, from one goroutine. It ends early only with an error of report, or of the kit.
func All(ctx context.Context, client Client, scripts []Script, o Options, report func(Result) error) error {
	ctx, stop := context.WithCancel(ctx)
	type outcome struct {
		result Result
		err    error
	}
	outcomes := make([]chan outcome, len(scripts))
	for i := range outcomes {
		outcomes[i] = make(chan outcome, 1)
	}
	next := make(chan int)
	running := make(chan struct{})
	jobs := max(1, min(cmp.Or(o.Jobs, 1), len(scripts)))
	for range jobs {
		go func() {
			defer func() { running <- struct{}{} }()
			for i := range next {
				v, list, err := Run(ctx, client, scripts[i], o)
				outcomes[i] <- outcome{Result{scripts[i], v, list}, err}
			}
		}()
	}
	go func() {
		defer close(next)
		for i := range scripts {
			select {
			case next <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() {
		stop()
		for range jobs {
			<-running
		}
	}()
	for i := range scripts {
		select {
		case o := <-outcomes[i]:
			if o.err != nil {
				return o.err
			}
			if err := report(o.result); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
