package main

import (
	"context"
	"crypto/cipher"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/internal/objectmeta"
	"gcsup/session"
	"gcsup/upload/gcs"
)

// serviceFlags select Cloud Storage or an emulator.
type serviceFlags struct{ endpoint, billing string }

func (f *serviceFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.endpoint, "endpoint", "", "send to this `HOST[:PORT]` or URL (default: STORAGE_EMULATOR_HOST, else storage.googleapis.com)")
	fs.StringVar(&f.billing, "billing-project", "", "`PROJECT` that is billed for the requests, and whose quota they use")
}

// connect returns a client with the endpoint and the credentials. emulator is the address of an
// emulator that replaces the default endpoint, or "".
func (f *serviceFlags) connect(ctx context.Context, emulator string) (*gcs.Client, error) {
	o := &gcs.Options{Endpoint: f.endpoint, QuotaProject: f.billing}
	if f.endpoint == "" && emulator != "" {
		o.Endpoint, o.Anonymous = emulator, true
	}
	client, err := gcs.New(ctx, o)
	if err != nil && !errors.Is(err, session.ErrCredentials) && ctx.Err() == nil {
		err = exit.WithKind(err, exit.ErrConfig)
	}
	return client, err
}

// stateFlags select where uploads are saved.
type stateFlags struct {
	url, keyFile string
	unsealed     bool
}

func (f *stateFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.url, "state", "", "save uploads in a bucket that all workers share, `gs://BUCKET/PREFIX`")
	fs.StringVar(&f.keyFile, "state-key-file", "", "seal the saved uploads with the key in `FILE`: 32 bytes, or the output of age-keygen")
	cmdline.Common(fs, "state", "state-key-file")
	fs.BoolVar(&f.unsealed, "state-unsealed", false, "do not seal the saved uploads: any reader of the bucket can write to their sessions")
}

// check returns an error for missing or contradictory flags.
func (f *stateFlags) check() error {
	switch {
	case f.url == "":
		return exit.Usagef("give the bucket in which uploads are saved with --state=gs://BUCKET/PREFIX")
	case f.keyFile == "" && !f.unsealed:
		return exit.Usagef("--state: saved uploads have secrets: give the key that seals them with --state-key-file=FILE, or --state-unsealed")
	}
	_, _, err := splitURL("--state", f.url)
	return err
}

// aead returns the AEAD that seals the saved uploads, or nil if they are not sealed.
func (f *stateFlags) aead() (cipher.AEAD, error) {
	if f.keyFile == "" {
		return nil, nil
	}
	aead, err := process.ReadStateKey(f.keyFile)
	if err != nil {
		return nil, exit.WithKind(fmt.Errorf("--state-key-file: %w", err), exit.ErrSource)
	}
	return aead, nil
}

// splitURL splits gs://BUCKET/OBJECT. of names the flag or argument in the error.
func splitURL(of, url string) (bucket, object string, err error) {
	bucket, object, ok := objectmeta.SplitURL(url)
	if !ok {
		return "", "", exit.Usagef("%s %s: want gs://BUCKET/PREFIX", of, url)
	}
	return bucket, object, nil
}
