package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"gcsup/internal/cli/command"
	"gcsup/session"
	"gcsup/upload"
)

// splitCommand divides the arguments of cp. dash is how many of them stand before "--", or -1. If only a URL stands
// there, a command follows, whose output is uploaded. Otherwise "--" has its usual meaning.
func splitCommand(args []string, dash int) (destination string, words []string, ok bool) {
	if dash != 1 || len(args) < 2 || !strings.HasPrefix(args[0], urlPrefix) {
		return "", nil, false
	}
	return args[0], args[1:], true
}

// newCommand returns the command of cp, which the upload starts.
func (r *reporter) newCommand(std stdio, words []string) (*command.Command, error) {
	o := command.Options{
		Args: words, Stdin: std.in, Stderr: std.err,
		Env:  slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, encryptionKeyEnv+"=") }),
		Say:  func(text string) { r.console.Fail(words[0] + ": " + text) }, // even with --quiet
		Lend: r.console.Hide,
	}
	if r.view.progress == progressBlock {
		o.Stderr = r.console
	}
	return command.New(o)
}

// uploadOutput uploads the output of a command, which is saved under name if it is in a spool. The object is made only
// if the command exits with 0.
func uploadOutput(ctx context.Context, u *upload.Uploader, c *command.Command, name string, spec session.Spec) (*upload.Result, error) {
	defer c.Close()
	defer context.AfterFunc(ctx, c.Stop)()
	u, err := u.With(upload.CallOptions{Confirm: c.Confirm, SourceName: name})
	if err != nil {
		return nil, err
	}
	res, err := u.Reader(ctx, c, spec)
	if failed, ok := errors.AsType[*command.Failure](err); ok {
		err = failed // the upload has nothing to add
	}
	return res, err
}
