package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/internal/objectmeta"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/session/state/bucketstore"
	"gcsup/upload/gcs"
)

// stateFlags select where uploads are saved: in a directory, or in a bucket.
type stateFlags struct {
	dir      string
	url      string
	keyFile  string
	unsealed bool
	lease    time.Duration
}

const defaultLease = 2 * time.Minute

func (f *stateFlags) addDir(fs *pflag.FlagSet, text string) {
	fs.StringVar(&f.dir, "state-dir", "", text)
}

// addBucket adds the flags of commands that use saved uploads.
func (f *stateFlags) addBucket(fs *pflag.FlagSet) {
	fs.StringVar(&f.url, "state", "", "keep saved uploads in a bucket that machines share, `gs://BUCKET/PREFIX`, instead of a directory")
	fs.StringVar(&f.keyFile, "state-key-file", "", "seal the uploads of --state with the key in `FILE`: 32 bytes, or the output of age-keygen")
	fs.BoolVar(&f.unsealed, "state-unsealed", false, "do not seal the uploads of --state: any reader of the bucket can write to their sessions")
	fs.DurationVar(&f.lease, "state-lease", defaultLease, "after a crash, another machine waits up to this `DURATION` before it resumes an upload of --state, 2s to 1h")
}

// check refuses contradictory flags.
func (f *stateFlags) check() error {
	switch {
	case f.url == "" && f.keyFile != "":
		return exit.Usagef("--state-key-file needs --state")
	case f.url == "" && f.unsealed:
		return exit.Usagef("--state-unsealed needs --state")
	case f.url == "" && f.lease != 0 && f.lease != defaultLease:
		return exit.Usagef("--state-lease needs --state")
	case f.url == "":
		return nil
	case f.keyFile == "" && !f.unsealed:
		return exit.Usagef("--state: saved uploads have secrets: give the key that seals them with --state-key-file=FILE, or --state-unsealed")
	}
	_, _, err := f.bucket()
	return err
}

// bucket returns the bucket and the prefix of --state.
func (f *stateFlags) bucket() (bucket, prefix string, err error) {
	bucket, prefix, ok := objectmeta.SplitURL(f.url)
	if !ok {
		return "", "", exit.Usagef("--state %s: want gs://BUCKET/PREFIX", f.url)
	}
	return bucket, prefix, nil
}

// options returns the options of a store in a bucket. project is billed.
func (f *stateFlags) options(project string) (*bucketstore.Options, error) {
	opts := &bucketstore.Options{Unsealed: f.unsealed, TTL: f.lease, UserProject: project}
	if f.keyFile == "" {
		return opts, nil
	}
	var err error
	if opts.AEAD, err = process.ReadStateKey(f.keyFile); err != nil {
		return nil, exit.WithKind(fmt.Errorf("--state-key-file: %w", err), exit.ErrSource)
	}
	return opts, nil
}

// openState opens the saved uploads in a bucket. It calls warn for each of the
// store's warnings.
func (f *stateFlags) openState(ctx context.Context, client *gcs.Client, project string, warn func(string)) (openStore, error) {
	bucket, prefix, err := f.bucket()
	if err != nil {
		return nil, err
	}
	opts, err := f.options(project)
	if err != nil {
		return nil, err
	}
	requests, err := session.NewClient(client.HTTP(), client.Endpoint())
	if err != nil {
		return nil, exit.WithKind(err, exit.ErrConfig)
	}
	store, err := bucketstore.Open(ctx, requests, bucket, prefix, opts)
	if err != nil {
		return nil, err
	}
	for _, text := range store.Warnings() {
		warn("warning: " + text)
	}
	return stateBucket{store}, nil
}

// stateDir returns the state directory: that of the flag or the default.
func stateDir(flag string) (string, error) {
	if flag != "" {
		return filepath.Abs(flag)
	}
	dir, err := process.StateDir()
	if err != nil {
		return "", exit.WithKind(fmt.Errorf("no default for the state directory; use --state-dir to name one: %w", err), exit.ErrConfig)
	}
	return dir, nil
}

// savedUploadsDir is the directory in a state directory that has the saved uploads.
const savedUploadsDir = "uploads"

// private returns the directories that a command does not upload: the state directories, and that of
// the emulator in use, whose files change while they are uploaded. The saved uploads have secrets. If
// a source is a state directory, or in one, the user named it, and only its saved uploads are left
// out.
func (f *targetFlags) private(sources []string) (dirs []string) {
	own, err := stateDir(f.state.dir)
	if err == nil {
		dirs = append(dirs, own)
	}
	if dir, err := process.StateDir(); err == nil && dir != own {
		dirs = append(dirs, dir)
	}
	for _, dir := range slices.Clone(dirs) {
		dirs = append(dirs, filepath.Join(dir, savedUploadsDir))
	}
	if f.emulator.on {
		if dir, err := f.emulatorDir(); err == nil {
			dirs = append(dirs, dir)
		}
	}
	return slices.DeleteFunc(dirs, func(dir string) bool {
		at, err := os.Stat(dir)
		return err == nil && filepath.Base(dir) != savedUploadsDir && slices.ContainsFunc(sources, func(source string) bool {
			abs, err := filepath.Abs(source)
			return err == nil && below(withoutLinks(abs), at)
		})
	})
}

// stateBucket is a store in a bucket, which needs no Close.
type stateBucket struct{ *bucketstore.Store }

func (stateBucket) Close() error { return nil }

// openDir opens the saved uploads in the directory.
func (f *stateFlags) openDir() (openStore, error) {
	dir, err := stateDir(f.dir)
	if err != nil {
		return nil, err
	}
	store, err := state.OpenDir(filepath.Join(dir, savedUploadsDir))
	if err != nil {
		return nil, fmt.Errorf("%w; use --state-dir to name another directory", err)
	}
	return store, nil
}
