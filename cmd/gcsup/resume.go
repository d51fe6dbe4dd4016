package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gcsup/session"
	"gcsup/upload"
)

type resumeFlags struct {
	place  placeFlags
	send   sendFlags
	output outputFlags
	all    bool
}

func newResume(std stdio) *cobra.Command {
	f := &resumeFlags{}
	cmd := &cobra.Command{
		Use:   "resume [ID... | --all]",
		Short: "Go on with interrupted uploads",
		Long: `resume goes on with saved uploads: those named, all, or the only one. Without IDs
it looks at uploads to the endpoint in use only.`,
		Example: `  gcsup resume
  gcsup resume 5f0c2f7d8ad2cc0d4b4a
  gcsup resume --all`,
		Args: func(_ *cobra.Command, args []string) error {
			if f.all && len(args) > 0 {
				return errors.New("give IDs or --all, not both")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, std, args) },
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.all, "all", false, "resume every saved upload")
	f.place.add(fs)
	f.send.add(fs)
	f.output.add(fs)
	return cmd
}

func (f *resumeFlags) run(cmd *cobra.Command, std stdio, ids []string) error {
	r := newReporter(std, f.output, cmd.Flags())
	named := make([]task, len(ids)) // all that is known of them so far
	opts, err := f.send.options()
	if err != nil {
		return r.refuse(named, err)
	}
	opts.Observer, opts.Logger = r.observe, f.output.logger(r.console)
	c, err := f.place.connect(cmd.Context(), opts, true)
	if err != nil {
		return r.refuse(named, err)
	}
	defer c.close()
	if len(ids) == 0 {
		if ids, err = f.choose(cmd.Context(), c, r.console); err != nil {
			return err
		}
	}
	tasks := make([]task, len(ids))
	for i, id := range ids {
		tasks[i] = resumption(cmd.Context(), c, id)
	}
	return r.run(cmd.Context(), c, tasks)
}

// choose picks the uploads when none were named.
func (f *resumeFlags) choose(ctx context.Context, c *connection, con *console) ([]string, error) {
	tokens, err := savedUploads(ctx, c.store, con)
	if err != nil {
		return nil, err
	}
	all := len(tokens)
	tokens = slices.DeleteFunc(tokens, func(t *session.Token) bool { return t.Endpoint != c.endpoint })
	if others := all - len(tokens); others > 0 {
		con.message("left alone: %d saved uploads to endpoints other than %s; see gcsup sessions list", others, c.endpoint)
	}
	ids := make([]string, len(tokens))
	for i, t := range tokens {
		ids[i] = t.ID
	}
	switch {
	case len(ids) == 0:
		con.message("nothing to resume")
	case len(ids) > 1 && !f.all:
		var list strings.Builder
		for _, t := range tokens {
			fmt.Fprintf(&list, "\n  gcsup resume %s   # %s to %s", t.ID, printable(t.SourcePath), printable(t.Spec.URL()))
		}
		return nil, usagef("%d uploads are saved; name one, or give --all:%s", len(ids), list.String())
	}
	return ids, nil
}

// resumption is the task of resuming one upload.
func resumption(ctx context.Context, c *connection, id string) task {
	token, err := c.store.Load(ctx, id)
	if err != nil {
		return task{source: id, do: func(context.Context) (*upload.Result, error) { return nil, err }}
	}
	return task{
		source: token.SourcePath, destination: token.Spec.URL(),
		do: func(ctx context.Context) (*upload.Result, error) { return c.uploader.Resume(ctx, id) },
	}
}

// savedUploads reads all saved uploads. One that is damaged is set aside, which
// is told; it must not keep the others from being seen.
func savedUploads(ctx context.Context, store *session.Dir, con *console) ([]*session.Token, error) {
	ids, err := store.List(ctx)
	if err != nil {
		return nil, err
	}
	var tokens []*session.Token
	for _, id := range ids {
		t, err := store.Load(ctx, id)
		switch {
		case err == nil:
			tokens = append(tokens, t)
		case errors.Is(err, session.ErrNoToken): // finished just now
		case errors.Is(err, session.ErrDamaged):
			con.fail(err.Error())
		default:
			return nil, err
		}
	}
	return tokens, nil
}
