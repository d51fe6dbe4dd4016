package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/gcs"
)

// connection is what uploads need: the service, or an emulator in its place,
// and the saved uploads.
type connection struct {
	uploader *upload.Uploader
	endpoint string
	store    *session.Dir // nil when not asked for
	client   *gcs.Client
	emulator *localEmulator // nil: the service
}

// connect finds the service. The options are completed with what the flags
// say; saved says whether the saved uploads are needed.
func (f *placeFlags) connect(ctx context.Context, opts upload.Options, saved bool) (_ *connection, err error) {
	c := &connection{}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	where := gcs.Options{Endpoint: f.endpoint}
	if where.Header, err = f.headers.header(); err != nil {
		return nil, err
	}
	if saved {
		if c.store, err = f.openStore(); err != nil {
			return nil, err
		}
		opts.Store = c.store
	}
	if f.emulator.on {
		if f.endpoint != "" {
			return nil, usagef("--emulator and --endpoint exclude each other")
		}
		dir, err := f.emulatorDir()
		if err != nil {
			return nil, err
		}
		if c.emulator, err = startLocal(dir); err != nil {
			return nil, err
		}
		where.Endpoint, where.Transport, where.Anonymous = c.emulator.endpoint, c.emulator.transport, true
	}
	if c.client, err = gcs.New(ctx, &where); err != nil {
		if errors.Is(err, session.ErrCredentials) {
			return nil, err
		}
		return nil, kinded{err, errConfig}
	}
	c.endpoint = c.client.Endpoint()
	if c.uploader, err = c.client.Uploader(&opts); err != nil {
		return nil, kinded{err, errUsage}
	}
	return c, nil
}

func (c *connection) close() {
	if c.client != nil {
		_ = c.client.Close()
	}
	if c.emulator != nil {
		c.emulator.close()
	}
	if c.store != nil {
		_ = c.store.Close()
	}
}

// openStore opens the saved uploads.
func (f *placeFlags) openStore() (*session.Dir, error) {
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

func (f *placeFlags) emulatorDir() (string, error) {
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
