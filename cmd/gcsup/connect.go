package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"

	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/gcs"
)

// connection is what uploads need: the service, or an emulator in its place,
// and the saved uploads.
type connection struct {
	endpoint string
	saved    *lazyStore     // nil when not asked for
	emulator *localEmulator // nil: the service
	options  gcs.Options

	client   *gcs.Client // nil until dial, as is the next
	uploader *upload.Uploader
}

// check refuses flags that make no sense, whatever is there to connect to, and
// returns the header that they make.
func (f *targetFlags) check() (http.Header, error) {
	if f.emulator.on && f.endpoint != "" {
		return nil, usagef("--emulator and --endpoint exclude each other")
	}
	return f.headers.header()
}

// open finds the endpoint. With saved the uploads are saved, in a directory that
// is made when it is first needed. It looks for no credentials: see dial.
func (f *targetFlags) open(ctx context.Context, saved bool) (_ *connection, err error) {
	c := &connection{options: gcs.Options{Endpoint: f.endpoint}}
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
	// What needs no credentials needs nobody else either.
	anonymous := c.options
	anonymous.Anonymous = true
	client, err := gcs.New(ctx, &anonymous)
	if err != nil {
		return nil, kindError{err, errConfig}
	}
	c.endpoint = client.Endpoint()
	return c, client.Close()
}

// dial finds the credentials. The options are completed with what open found.
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

// elsewhere is the error of a saved upload that was begun at another endpoint
// than the one in use: it says how to name that.
func (f *targetFlags) endpointMismatch(c *connection, t *session.Token) error {
	var text string
	switch {
	case isLocal(t.Endpoint):
		text = "it was begun with --emulator: give --emulator=DIR, with the directory that it had then"
		if dir, err := stateDir(f.stateDir); err == nil && t.Endpoint == localEndpoint(filepath.Join(dir, "emulator")) {
			text = "it was begun with --emulator: give that again"
		}
	case t.Endpoint == "https://storage."+cmp.Or(os.Getenv("GOOGLE_CLOUD_UNIVERSE_DOMAIN"), "googleapis.com"):
		text = fmt.Sprintf("it was begun at %s: give neither --emulator nor --endpoint, and unset STORAGE_EMULATOR_HOST", t.Endpoint)
	default:
		// Quoted, and with a warning, because the saved upload may be an import.
		text = fmt.Sprintf("it was begun at %s, not at %s: set STORAGE_EMULATOR_HOST=%[3]s if that is an emulator; else, if you trust it with your credentials, give --endpoint=%[3]s",
			t.Endpoint, endpointText(c.endpoint), shellQuote(t.Endpoint))
	}
	return kindError{errors.New(text), session.ErrForeignURI}
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
		return nil, fmt.Errorf("%w; another directory can be given with --state-dir", err)
	}
	return store, nil
}

// storeMissing reports whether there is no directory of saved uploads yet.
func (f *targetFlags) storeMissing() bool {
	dir, err := stateDir(f.stateDir)
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(dir, "sessions"))
	return errors.Is(err, fs.ErrNotExist)
}

// existingStore opens the saved uploads to look at them, and makes no directory:
// without one there are none, and the store is nil.
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

// logger is the one of --verbose, nil otherwise.
func (f *outputFlags) logger(c *console) *slog.Logger {
	if !f.verbose {
		return nil
	}
	return slog.New(slog.NewTextHandler(c, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
