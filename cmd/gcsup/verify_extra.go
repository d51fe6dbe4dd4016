package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/result"
	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/mirror"
	"gcsup/upload/tree"
)

// checkExtra refuses arguments with which --extra has no meaning.
func (f *verifyFlags) checkExtra(sources []string) error {
	switch {
	case !f.extra:
		return nil
	case !f.sources.recursive || len(sources) != 1 || f.sources.list():
		return exit.Usagef("--extra: want -r and one directory, whose objects are listed")
	case f.sources.shard != "":
		return exit.Usagef("--extra and --shard exclude each other")
	}
	return nil
}

// chooseExtra returns the files of a directory, and what compares them and the objects.
func (v *verifier) chooseExtra(ctx context.Context, dir, destination string, spec session.Spec) (*selection, *mirror.Mirror, error) {
	bucket, object, err := parseDestination(destination)
	if err != nil {
		return nil, nil, err
	}
	spec.Bucket, spec.Object = bucket, "x"
	if err := spec.Validate(); err != nil {
		return nil, nil, err
	}
	spec.Object = object
	chosen := &selection{trees: true, args: []string{dir}, bucket: bucket, close: func() {}}
	var m *mirror.Mirror
	err = unlessDone(ctx, func() error {
		placed, _, err := tree.Place([]string{dir}, spec, true)
		if err != nil {
			return err
		}
		if p := placed[0]; p.Err != nil {
			return p.Err
		} else if !p.IsDir {
			return exit.Usagef("--extra: %s is not a directory", dir)
		}
		opts := &mirror.Options{Batch: v.flags.jobs.options()}
		opts.Tree, err = v.flags.sources.tree.Options(&chosen.notes, func() (io.Reader, error) {
			announceTyping(v.console, v.std.in, v.flags.sources.tree.FromStdin())
			return newInterruptible(v.std.in), checkStdin(v.std.in)
		})
		if err != nil {
			return err
		}
		spec.Object = placed[0].Name
		m, err = mirror.New(dir, spec, opts)
		return err
	})
	if err != nil {
		return nil, nil, sourceError(err, dir)
	}
	chosen.prefix, chosen.sizes = m.Prefix(), m.Sizes(ctx)
	return chosen, m, nil
}

// withExtra yields the results of files, as [upload.Uploader.Compare] does, and reports the objects
// without a file.
func (v *verifier) withExtra(ctx context.Context, m *mirror.Mirror) iter.Seq2[*upload.Result, error] {
	return func(yield func(*upload.Result, error) bool) {
		for o, err := range m.Check(ctx, v.c.uploader) {
			switch {
			case o.Object != nil && o.Kind == mirror.Delete:
				if err := v.reportExtra(o.Object, "there is no file"); err != nil {
					yield(nil, err)
					return
				}
			case o.Object != nil || leftOut(err), o.Result == nil && ctx.Err() != nil:
			case !yield(o.Result, err):
				return
			}
		}
	}
}

// reportExtra prints an object without a file or a record, and counts it. lacks says which.
func (v *verifier) reportExtra(o *session.Object, lacks string) error {
	destination := "gs://" + o.Bucket + "/" + o.Name
	err := exit.WithKind(errors.New(lacks+" for "+destination), exit.ErrDiffers)
	v.totals.Add(result.Extra, err)
	var failed error
	if v.flags.json {
		failed = result.Print(v.out, result.NewExtraLine(o, err))
	} else {
		_, failed = fmt.Fprintf(v.out, "%-8s %s: %s\n", result.Extra, process.Printable(destination), lacks)
	}
	if failed != nil {
		return fmt.Errorf("standard output: %w", failed)
	}
	return nil
}
