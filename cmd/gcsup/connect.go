package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/gcs"
)

// connection holds what uploads need: the saved uploads, and the service or an
// emulator in its place.
type connection struct {
	endpoint string
	saved    *lazyStore     // nil if nothing is saved
	emulator *localEmulator // nil for the service
	options  gcs.Options

	client   *gcs.Client      // nil before dial
	uploader *upload.Uploader // nil before dial
}

// check refuses contradictory flags and returns the header for every request.
func (f *targetFlags) check() (http.Header, error) {
	if f.emulator.on && f.endpoint != "" {
		return nil, usagef("--emulator and --endpoint exclude each other")
	}
	return f.headers.header()
}

// open finds the endpoint. If saved is true, uploads are saved in a directory
// that is created when it is first needed. open does not look for credentials;
// dial does.
func (f *targetFlags) open(ctx context.Context, saved bool) (_ *connection, err error) {
	c := &connection{options: gcs.Options{Endpoint: f.endpoint, QuotaProject: f.billing}}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if c.options.Header, err = f.check(); err != nil {
		return nil, err
	}
	if saved {
		c.saved = &lazyStore{open: f.openStore, missing: f.storeMissing}
	}
	if f.emulator.on {
		dir, err := f.emulatorDir()
		if err != nil {
			return nil, err
		}
		if c.emulator, err = startLocal(dir); err != nil {
			return nil, err
		}
		c.options.Endpoint, c.options.Transport, c.options.Anonymous = c.emulator.endpoint, c.emulator.transport, true
		c.endpoint = c.emulator.endpoint
		return c, nil
	}
	// An anonymous client finds the endpoint without a request.
	anonymous := c.options
	anonymous.Anonymous = true
	client, err := gcs.New(ctx, &anonymous)
	if err != nil {
		return nil, kindError{err, errConfig}
	}
	c.endpoint = client.Endpoint()
	return c, client.Close()
}

// dial finds the credentials and makes the uploader. It adds to opts what open
// found.
func (c *connection) dial(ctx context.Context, opts upload.Options) (err error) {
	if c.saved != nil {
		opts.Store = c.saved
	}
	if c.client, err = gcs.New(ctx, &c.options); err != nil {
		if errors.Is(err, session.ErrCredentials) {
			return err
		}
		return kindError{err, errConfig}
	}
	if c.uploader, err = c.client.Uploader(&opts); err != nil {
		return kindError{err, errUsage}
	}
	return nil
}

// endpointMismatch returns the error for a saved upload that was started at
// endpoint, which is not the one in use. Its text explains how to select that
// endpoint.
func (f *targetFlags) endpointMismatch(c *connection, endpoint string) error {
	var text string
	switch {
	case isLocal(endpoint):
		text = "it was started with --emulator: give --emulator=DIR with the same directory"
		if dir, err := stateDir(f.stateDir); err == nil && endpoint == localEndpoint(filepath.Join(dir, "emulator")) {
			text = "it was started with --emulator: give --emulator again"
		}
	case endpoint == "https://storage."+cmp.Or(os.Getenv("GOOGLE_CLOUD_UNIVERSE_DOMAIN"), "googleapis.com"):
		text = fmt.Sprintf("it was started at %s: remove --emulator and --endpoint, and unset STORAGE_EMULATOR_HOST", endpoint)
	default:
		// The saved upload may be an import: quote its endpoint, and warn.
		text = fmt.Sprintf("it was started at %s, not at %s: if that is an emulator, set STORAGE_EMULATOR_HOST=%[3]s; if you trust it with your credentials, give --endpoint=%[3]s",
			endpoint, endpointText(c.endpoint), shellQuote(endpoint))
	}
	return kindError{errors.New(text), session.ErrURIMismatch}
}

func (c *connection) close() {
	if c.client != nil {
		_ = c.client.Close()
	}
	if c.emulator != nil {
		c.emulator.close()
	}
	if c.saved != nil {
		c.saved.close()
	}
}

// openStore opens the saved uploads.
func (f *targetFlags) openStore() (*session.Dir, error) {
	dir, err := stateDir(f.stateDir)
	if err != nil {
		return nil, err
	}
	store, err := session.OpenDir(filepath.Join(dir, "sessions"))
	if err != nil {
		return nil, fmt.Errorf("%w; use --state-dir to name another directory", err)
	}
	return store, nil
}

// storeMissing reports whether the directory of saved uploads does not exist.
func (f *targetFlags) storeMissing() bool {
	dir, err := stateDir(f.stateDir)
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(dir, "sessions"))
	return errors.Is(err, fs.ErrNotExist)
}

// existingStore opens the saved uploads without creating a directory. It returns
// nil if there is no directory, and so no saved upload.
func (f *targetFlags) existingStore() (*session.Dir, error) {
	if f.storeMissing() {
		return nil, nil
	}
	return f.openStore()
}

func (f *targetFlags) emulatorDir() (string, error) {
	if f.emulator.dir != "" {
		return filepath.Abs(f.emulator.dir)
	}
	dir, err := stateDir(f.stateDir)
	return filepath.Join(dir, "emulator"), err
}
