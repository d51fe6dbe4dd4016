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
	"strings"
	"time"

	"gcsup/backoff"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/shell"
	"gcsup/internal/congestion"
	"gcsup/internal/storeretry"
	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/gcs"
)

// connection holds what uploads need: the saved uploads, and the service or an
// emulator in its place.
type connection struct {
	endpoint string
	saved    *lazyStore     // nil if nothing is saved
	policy   backoff.Policy // for requests to the state bucket that the command makes itself
	retryFor time.Duration  // like upload.Options.RetryFor
	warn     func(string)   // prints a message about the saved uploads; nil prints nothing
	emulator *localEmulator // nil for the service
	options  gcs.Options

	client   *gcs.Client      // nil before it is needed
	uploader *upload.Uploader // nil before dial
}

// check refuses contradictory flags and returns the header for every request.
func (f *targetFlags) check() (http.Header, error) {
	if err := f.state.check(); err != nil {
		return nil, err
	}
	if err := f.credentials.check(); err != nil {
		return nil, err
	}
	return f.headers.header()
}

// open finds the endpoint. If saved is true, uploads are saved in a directory, which
// is created on first use, or in a bucket. open does not look for credentials. dial
// does, and so does the first use of a bucket.
func (f *targetFlags) open(ctx context.Context, saved bool) (_ *connection, err error) {
	c := &connection{options: gcs.Options{Endpoint: f.endpoint, QuotaProject: f.billing, CongestionControl: f.congestion, UserAgent: "gcsup-cli/" + strings.Trim(version().Version, "()")}}
	f.credentials.set(&c.options)
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if c.options.Header, err = f.check(); err != nil {
		return nil, err
	}
	if saved {
		c.saved = f.lazyStore(c)
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
		return nil, exit.WithKind(err, exit.ErrConfig)
	}
	c.endpoint = client.Endpoint()
	return c, client.Close()
}

// congestionText says which congestion control connections have, and how it can be a better one.
func congestionText(name string) string {
	used, hint := congestion.Describe(name)
	if hint == "" {
		return used
	}
	return used + " (" + hint + ")"
}

// dial finds the credentials and makes the uploader. It adds the results of open to
// opts.
func (c *connection) dial(ctx context.Context, opts upload.Options) (err error) {
	if c.saved != nil {
		opts.Store = c.saved.store()
	}
	if err := c.connect(ctx); err != nil {
		return err
	}
	if c.uploader, err = c.client.Uploader(&opts); err != nil {
		return exit.WithKind(err, exit.ErrUsage)
	}
	return nil
}

// connect finds the credentials, once.
func (c *connection) connect(ctx context.Context) error {
	if c.client != nil {
		return nil
	}
	client, err := gcs.New(ctx, &c.options)
	switch {
	case err == nil:
		c.client = client
		return nil
	case errors.Is(err, session.ErrCredentials), ctx.Err() != nil:
		return err
	}
	return exit.WithKind(err, exit.ErrConfig)
}

// offline returns an Uploader for calls that make no request to the service, and
// need no credentials unless the saved uploads are in a bucket.
func (c *connection) offline(endpoint string) (*upload.Uploader, error) {
	return upload.New(nil, &upload.Options{Endpoint: endpoint, Store: c.saved.store(), Observer: c.observe})
}

// observe prints the waits for the state bucket, of an Uploader whose other events are not
// shown.
func (c *connection) observe(e upload.Event) {
	if e.Kind == upload.Waiting && e.Store {
		c.waiting(e.Delay, exit.Without(e.Cause, e.Err))
	}
}

// waiting prints that a request to the state bucket failed, and will be tried again.
func (c *connection) waiting(delay time.Duration, cause string) {
	if c.warn != nil {
		c.warn(fmt.Sprintf("%s; trying again in %s", cause, readable.Span(delay+time.Second-1)))
	}
}

// storeRetry returns how the requests to the state bucket that the command makes itself
// are retried.
func (c *connection) storeRetry() storeretry.Retry {
	return storeretry.Retry{
		Policy: c.policy,
		For: func() time.Duration {
			if c.retryFor > 0 {
				return c.retryFor
			}
			return c.policy.LongestTotal(backoff.Retries(0))
		},
		Waiting: func(p backoff.Pause, err error) { c.waiting(p.Delay, exit.Text(err)) },
	}
}

// endpointMismatch returns the error for a saved upload that was started at endpoint,
// if another endpoint is in use. Its text explains how to select that endpoint.
func (f *targetFlags) endpointMismatch(c *connection, endpoint string) error {
	return f.selectEndpoint(c, "it was started", endpoint)
}

// selectEndpoint returns an error whose text explains how to select the endpoint at which something was done, if another
// endpoint is in use.
func (f *targetFlags) selectEndpoint(c *connection, done, endpoint string) error {
	var text string
	switch {
	case isLocal(endpoint):
		text = done + " with --emulator: give --emulator=DIR with the same directory"
		if dir, err := stateDir(f.state.dir); err == nil && endpoint == localEndpoint(filepath.Join(dir, "emulator")) {
			text = done + " with --emulator: give --emulator again"
		}
	case endpoint == "https://storage."+cmp.Or(os.Getenv("GOOGLE_CLOUD_UNIVERSE_DOMAIN"), "googleapis.com"):
		text = fmt.Sprintf("%s at %s: remove --emulator and --endpoint, and unset STORAGE_EMULATOR_HOST", done, endpoint)
		if c.endpoint == gcs.MutualTLSEndpoint {
			text = fmt.Sprintf("%s at %s: set GOOGLE_API_USE_MTLS_ENDPOINT=never", done, endpoint)
		}
	case endpoint == gcs.MutualTLSEndpoint:
		text = fmt.Sprintf("%s at %s: remove --emulator and --endpoint, unset STORAGE_EMULATOR_HOST, and set GOOGLE_API_USE_MTLS_ENDPOINT=always", done, endpoint)
	default:
		// The endpoint is from a file that may be another user's: quote it, and warn.
		text = fmt.Sprintf("%s at %s, not at %s: if that is an emulator, set STORAGE_EMULATOR_HOST=%[4]s; if you trust it with your credentials, give --endpoint=%[4]s",
			done, endpoint, endpointText(c.endpoint), shell.Quote(endpoint))
	}
	return exit.WithKind(errors.New(text), session.ErrURIMismatch)
}

func (c *connection) close() {
	if c.saved != nil {
		c.saved.close()
	}
	if c.client != nil {
		_ = c.client.Close()
	}
	if c.emulator != nil {
		c.emulator.close()
	}
}

// lazyStore returns the saved uploads of a connection.
func (f *targetFlags) lazyStore(c *connection) *lazyStore {
	return &lazyStore{
		shared:  f.state.url != "",
		retry:   func() storeretry.Retry { return c.storeRetry() },
		missing: f.storeMissing,
		open: func(ctx context.Context) (openStore, error) {
			if f.state.url == "" {
				return f.state.openDir()
			}
			if err := c.connect(ctx); err != nil {
				return nil, err
			}
			return f.state.openState(ctx, c.client, f.billing, func(text string) {
				if c.warn != nil {
					c.warn(text)
				}
			})
		},
	}
}

// storeMissing reports whether the directory of saved uploads does not exist.
func (f *targetFlags) storeMissing() bool {
	if f.state.url != "" {
		return false
	}
	dir, err := stateDir(f.state.dir)
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(dir, savedUploadsDir))
	return errors.Is(err, fs.ErrNotExist)
}

func (f *targetFlags) emulatorDir() (string, error) {
	if f.emulator.dir != "" {
		return filepath.Abs(f.emulator.dir)
	}
	dir, err := stateDir(f.state.dir)
	return filepath.Join(dir, "emulator"), err
}
