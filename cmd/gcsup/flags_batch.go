package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/upload"
	"gcsup/upload/tree"
)

// batchFlags control an upload of many files.
type batchFlags struct {
	noClobber     bool
	skipIdentical skipFlag
	skipIfListed  bool // --skip-identical was not given, so that it must not cost a request for each file
	jobs          jobsFlag
	dryRun        bool
	manifest      string
	manifestCheck bool
}

func (f *batchFlags) add(fs *pflag.FlagSet) {
	fs.BoolVarP(&f.noClobber, "no-clobber", "n", false, "skip a source whose object exists; for -n of rclone, which uploads nothing, use --dry-run")
	skip := fs.VarPF(&f.skipIdentical, "skip-identical", "", "skip a source whose object has the same size and CRC32C (default of -r); =mtime: size and time")
	skip.NoOptDefVal = skipByCRC32C
	fs.Var(&f.jobs, "jobs", "upload `N` files at a time, or auto: more while the throughput rises")
	fs.StringVar(&f.manifest, "manifest", "", "record each file in `FILE`, and skip files that it records as finished")
	fs.BoolVar(&f.manifestCheck, "manifest-check", false, "skip a file of --manifest only if its object still has the recorded bytes; lists the bucket")
	fs.BoolVar(&f.dryRun, "dry-run", false, "print what would be uploaded, and upload nothing")
	cmdline.Common(fs, "skip-identical", "jobs", "manifest", "dry-run")
}

// The values of --skip-identical.
const (
	skipByCRC32C = "crc32c"
	skipByMTime  = "mtime"
	skipOff      = "off"
)

// skipFlag is --skip-identical[=crc32c|mtime|off].
type skipFlag string

func (s *skipFlag) Type() string   { return skipByCRC32C + "|" + skipByMTime + "|" + skipOff }
func (s *skipFlag) String() string { return string(*s) }

func (s *skipFlag) Set(text string) error {
	if text != skipByCRC32C && text != skipByMTime && text != skipOff {
		return fmt.Errorf("want %s, %s or %s", skipByCRC32C, skipByMTime, skipOff)
	}
	*s = skipFlag(text)
	return nil
}

// check refuses contradictory flags. stream is true for standard input.
func (f *batchFlags) check(stream bool) error {
	switch {
	case stream && f.skipIdentical != "" && f.skipIdentical != skipOff:
		return exit.Usagef("--skip-identical: a stream has no size and no checksum before it is read")
	case stream && f.manifest != "":
		return exit.Usagef("--manifest: a stream has no identity to record")
	case f.manifest == stdoutName:
		return exit.Usagef("--manifest: want the name of a file: a later run reads it; --json prints results to standard output")
	case f.manifestCheck && f.manifest == "":
		return exit.Usagef("--manifest-check needs --manifest")
	case f.manifest != "" && f.dryRun:
		return exit.Usagef("--dry-run and --manifest exclude each other: nothing is uploaded that can be recorded")
	case stream && f.dryRun:
		return exit.Usagef("--dry-run: a stream can only be uploaded")
	}
	return nil
}

// skip returns the rule by which files are skipped.
func (f *batchFlags) skip() upload.Skip {
	switch {
	case f.noClobber:
		return upload.SkipExisting
	case f.skipIdentical == skipByMTime:
		return upload.SkipSameTime
	case f.skipIdentical == skipByCRC32C:
		return upload.SkipIdentical
	}
	return upload.SkipNothing
}

// sorted reports whether the files must be sorted, to compare them with a listing
// or with what a manifest has, or to print them.
func (f *batchFlags) sorted(shard tree.Shard) bool {
	return f.skip() != upload.SkipNothing || f.dryRun || f.recorded(shard)
}

// recorded reports whether an earlier run recorded files.
func (f *batchFlags) recorded(shard tree.Shard) bool {
	info, err := os.Stat(f.manifestFile(shard))
	return f.manifest != "" && err == nil && info.Size() > 0
}

// manifestFile returns the file of the manifest: each shard has one of its own.
func (f *batchFlags) manifestFile(shard tree.Shard) string {
	if shard.Count <= 1 {
		return f.manifest
	}
	return fmt.Sprintf("%s.%d-of-%d", f.manifest, shard.Index, shard.Count)
}

// options returns the library's options for the files that were chosen.
func (f *batchFlags) options(chosen *selection) *upload.BatchOptions {
	o := f.jobs.options()
	o.Skip, o.SkipIfListed, o.DryRun, o.Sizes = f.skip(), f.skipIfListed, f.dryRun, chosen.sizes
	switch {
	case !chosen.single():
		o.Listing = &upload.Listing{Bucket: chosen.bucket, Prefix: chosen.prefix}
	case f.skipIfListed:
		o.Skip = upload.SkipNothing // -r of one file is like no -r
	}
	return &o
}
