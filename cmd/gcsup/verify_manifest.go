package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"gcsup/chunk"
	"gcsup/internal/checksum"
	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/result"
	"gcsup/internal/cli/screen"
	"gcsup/upload"
	"gcsup/upload/manifest"
)

// args checks the number of arguments.
func (f *verifyFlags) args(cmd *cobra.Command, args []string) error {
	if !cmdline.OnCommandLine(cmd.Flags().Lookup("manifest")) {
		return cmdline.AtLeast(1, "at least one SOURCE and then gs://BUCKET[/OBJECT], or --manifest FILE")(cmd, args)
	}
	if len(args) > 0 {
		return exit.Usagef("verify: --manifest FILE names what is compared: remove %s; see %s",
			process.Printable(args[0]), cmdline.HelpOf(cmd))
	}
	return nil
}

// checkManifest refuses flags that have no meaning with --manifest.
func (v *verifier) checkManifest() error {
	choosing := append([]string{"recursive-too", "jobs", "encryption-key-file"}, cmdline.Groups[0].Flags...)
	for _, name := range choosing {
		if flag := v.given.Lookup(name); flag != nil && name != "manifest" && cmdline.OnCommandLine(flag) {
			return exit.Usagef("--%s and --manifest exclude each other: all that FILE records is compared, without a file", name)
		}
	}
	switch info, err := os.Stat(v.flags.manifest); {
	case v.flags.manifest == "":
		return exit.Usagef("--manifest: want the name of a file")
	case err != nil: // before credentials are needed
		return sourceError(err, v.flags.manifest)
	case !info.Mode().IsRegular():
		return exit.WithKind(fmt.Errorf("%s: not a regular file", v.flags.manifest), exit.ErrSource)
	}
	_, err := v.flags.target.check()
	return err
}

// runManifest compares the objects that a manifest records with their buckets.
func (v *verifier) runManifest(ctx context.Context) error {
	v.begin()
	if err := v.checkManifest(); err != nil {
		return err
	}
	v.view = v.flags.progress.view(v.std, v.flags.quiet, false)
	v.progress = newVerifyProgress(screen.NewDisplay(screen.Run{Work: screen.Comparing, Files: -1}))
	var err error
	if v.c, err = v.flags.target.open(ctx, false); err != nil {
		return err
	}
	defer v.c.close()
	if err := v.c.dial(ctx, upload.Options{Observer: v.progress.observe}); err != nil {
		return withHint(err, v.c.endpoint)
	}
	stop := v.showProgress(ctx, &selection{})
	defer stop()
	check := manifest.Check{Path: v.flags.manifest, Extra: v.flags.extra, UserProject: v.flags.userProject}
	regenerated := 0
	for c, err := range check.Compare(ctx, v.c.uploader) {
		if err != nil && c.Record.Bucket == "" {
			stop()
			if ctx.Err() != nil {
				break
			}
			return withHint(err, v.c.endpoint)
		}
		same, was := c.Difference == upload.ObjectEqual && c.Object != nil, c.Record.Generation
		if same && was != 0 && c.Object.Generation != was {
			regenerated++
		}
		if err := v.reportRecord(c, err); err != nil {
			return err
		}
	}
	stop()
	return v.endManifest(ctx, &check, regenerated)
}

// endManifest prints the totals, and returns the error of the run.
func (v *verifier) endManifest(ctx context.Context, check *manifest.Check, regenerated int) error {
	if ctx.Err() != nil {
		v.console.Message("%s; the rest was not compared", v.totals.Text())
		return context.Cause(ctx)
	}
	if n := int(check.Damaged); n > 0 {
		text := readable.Plural(n, "damaged line", "damaged lines") + ": run cp --manifest again for the files"
		err := exit.WithKind(errors.New(text), exit.ErrDiffers)
		v.totals.Add(result.Failed, err)
		line := result.NewVerifyLine(result.File{Source: check.Path}, result.Failed, nil, err)
		if err := v.print(line, check.Path, err); err != nil {
			return err
		}
	}
	var elsewhere error
	for _, endpoint := range slices.Sorted(maps.Keys(check.Elsewhere)) {
		of := " of " + check.Path
		done := readable.Plural(int(check.Elsewhere[endpoint]), "record"+of+" was made", "records"+of+" were made")
		elsewhere = v.flags.target.selectEndpoint(v.c, done, endpoint)
		if !v.totals.None() {
			v.console.Message("warning: not compared: %v", elsewhere)
		}
	}
	switch {
	case !v.totals.None():
	case elsewhere != nil:
		return fmt.Errorf("nothing was compared: %w", elsewhere)
	default:
		return exit.WithKind(fmt.Errorf("%s has no records: nothing was compared", check.Path), exit.ErrSource)
	}
	text := v.totals.Text()
	if regenerated > 0 {
		text += "; " + readable.Plural(regenerated, "object is", "objects are") + " another generation with the same bytes"
	}
	v.console.Message("%s", text)
	if v.totals.Code != exit.OK {
		return exit.Printed(v.totals.Code)
	}
	return nil
}

// reportRecord prints the outcome of a record, of an object without one, or of a bucket that cannot be listed
// because of err.
func (v *verifier) reportRecord(c manifest.Comparison, err error) error {
	r, o := &c.Record, c.Object
	if err == nil && r.Status == "" {
		return v.reportExtra(o, "there is no record")
	}
	t := task{source: r.Path, destination: "gs://" + r.Bucket + "/" + r.Object}
	res := &upload.Result{Path: r.Path, Size: -1, Object: o}
	if r.Source != (chunk.Identity{}) {
		res.Size = r.Source.Size
	}
	status := result.Same
	switch {
	case err != nil:
		t.source, status = t.destination, result.Failed
	case r.Status == manifest.Skipped && r.Source == (chunk.Identity{}):
		status = result.Skipped // a link or a socket, which has no object
	case c.Difference == upload.ObjectMissing:
		status, err = result.Missing, errors.New("there is no "+t.destination)
	case c.Difference != upload.ObjectEqual:
		status, err = result.Differs, errors.New(recordDifference(t.destination, c))
	}
	if status == result.Missing || status == result.Differs {
		err = exit.WithKind(err, exit.ErrDiffers)
	}
	v.totals.Add(status, err)
	v.progress.end(t, status, nil) // no file was read
	line := result.NewVerifyLine(t.file(), status, res, err)
	if r.Generation != 0 {
		line.Recorded = strconv.FormatInt(r.Generation, 10)
	}
	return v.print(line, t.source, err)
}

// recordDifference describes how an object differs from its record.
func recordDifference(destination string, c manifest.Comparison) string {
	r, o := &c.Record, c.Object
	switch {
	case c.Difference == upload.SizeDiffers && o.Gzip:
		return fmt.Sprintf("%s is compressed from %d bytes, the file had %d", destination, o.UncompressedSize, r.Source.Size)
	case c.Difference == upload.SizeDiffers:
		return fmt.Sprintf("%s has %d bytes, the file had %d", destination, o.Size, r.Source.Size)
	case c.Difference == upload.ContentDiffers:
		return fmt.Sprintf("%s has the CRC32C %s, the record %s", destination, checksum.Encode(o.CRC32C), checksum.Encode(r.CRC32C))
	}
	return destination + " has another generation than the recorded one, and no CRC32C to compare with"
}
