package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
)

// onQueue returns a command without arguments that opens the queue and calls do.
func onQueue(std stdio, use, short, long string, do func(ctx context.Context, l *link) error) *cobra.Command {
	nats := &natsFlags{}
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := nats.open(cmd.Context(), std)
			if err != nil {
				return err
			}
			defer l.close()
			return l.explain(do(cmd.Context(), l))
		},
	}
	nats.add(cmd.Flags())
	return cmd
}

func newRetry(std stdio) *cobra.Command {
	var failed bool
	var keys []string
	cmd := onQueue(std, "retry --failed|KEY...", "Put files that failed back into the queue",
		"retry puts files that are no longer tried back into the queue: all with --failed, or those\nwith the keys that status --failed prints. If another program replaced an object\nmeanwhile, submit the tree again instead.",
		func(ctx context.Context, l *link) (err error) {
			var n int
			if failed {
				n, err = l.RetryFailed(ctx)
			} else {
				_, err = eachKey(keys, func(key string) error {
					added, err := l.Retry(ctx, key)
					if added {
						n++
					}
					return err
				})
			}
			if n > 0 || err == nil {
				fmt.Fprintf(std.out, "%d files are in the queue again\n", n)
			}
			return err
		})
	cmd.Flags().BoolVar(&failed, "failed", false, "all files that failed")
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if keys = args; failed == (len(args) > 0) {
			return exit.Usagef("retry: want --failed, or keys of status --failed")
		}
		return nil
	}
	return cmd
}

func newForget(std stdio) *cobra.Command {
	var keys []string
	cmd := onQueue(std, "forget KEY...", "Forget files that failed",
		"forget deletes the records of files that failed, by the keys that status --failed prints.\nThe files no longer count as failed. If the tree is submitted again, they are, too.",
		func(ctx context.Context, l *link) error {
			n, err := eachKey(keys, func(key string) error { return l.Forget(ctx, key) })
			if n > 0 || err == nil {
				fmt.Fprintf(std.out, "%d files are forgotten\n", n)
			}
			return err
		})
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if keys = args; len(args) == 0 {
			return exit.Usagef("forget: want keys of status --failed")
		}
		return nil
	}
	return cmd
}

// eachKey calls f for each key, and returns the number of calls without an error, and the errors of the
// others.
func eachKey(keys []string, f func(key string) error) (n int, err error) {
	for _, key := range keys {
		failed := f(key)
		if failed == nil {
			n++
		}
		err = errors.Join(err, failed)
	}
	return n, err
}

func newCancel(std stdio) *cobra.Command {
	return onQueue(std, "cancel", "Empty the queue, and cancel the uploads of the workers",
		"cancel empties the queue. The workers cancel their uploads at the service. Uploads that no\nworker has stay saved: gcsup uploads list --state shows them. Objects are not deleted.",
		func(ctx context.Context, l *link) error {
			n, err := l.Cancel(ctx)
			if err == nil {
				fmt.Fprintf(std.out, "%d tasks were canceled\n", n)
			}
			return err
		})
}

func newDrain(std stdio) *cobra.Command {
	var off bool
	cmd := onQueue(std, "drain [--off]", "Let the workers finish their tasks and take no new ones",
		"drain lets the workers finish their tasks. They keep running, and take no new tasks until\ndrain --off.",
		func(ctx context.Context, l *link) error { return l.SetDrain(ctx, !off) })
	cmd.Flags().BoolVar(&off, "off", false, "let the workers take tasks again")
	return cmd
}

func newLimit(std stdio) *cobra.Command {
	var rate cmdline.Size
	cmd := onQueue(std, "limit RATE|off", "Limit the bytes per second of all workers together",
		"limit sets the bytes per second of all workers together, such as 100MiB. The workers that\nhave uploads share it equally, some seconds later.",
		func(ctx context.Context, l *link) error { return l.SetRate(ctx, int64(rate)) })
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 1 && args[0] == "off" {
			return nil
		}
		if len(args) != 1 || rate.Set(args[0]) != nil || rate == 0 {
			return exit.Usagef("limit: want a size such as 100MiB, or off")
		}
		return nil
	}
	return cmd
}
