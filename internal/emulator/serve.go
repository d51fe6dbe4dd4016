// Package emulator serves package fakegcs as a process: its flags, addresses, certificates and output. It
// needs only the standard library, so that cmd/fakegcs is small. gcsup emulator has the same flags.
package emulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"gcsup/fakegcs"
	"gcsup/internal/cli/shell"
)

// Serve serves until ctx ends. given reports whether a flag was given. It prints one line to stdout when
// it is ready.
func (f *Flags) Serve(ctx context.Context, given func(name string) bool, stdout, stderr io.Writer) error {
	chosen := f.randomFaults > 0 && !given("fault-seed")
	if chosen {
		f.faultSeed = rand.Uint64()
	}
	opts, err := f.options(given, stderr)
	if err != nil {
		return err
	}
	if chosen {
		if _, err := fmt.Fprintf(stderr, "--fault-seed=%d makes the same faults again\n", f.faultSeed); err != nil {
			return fmt.Errorf("standard error: %w", err)
		}
	}
	ln, err := listen(f.addr)
	if err != nil {
		return err
	}
	defer ln.Close()
	e, err := New(opts)
	if err != nil {
		return err
	}
	written := &files{dir: f.dir}
	defer written.remove()
	address := reachable(ln.Addr(), f.addr)
	url := "http://" + address
	if f.tls {
		url = "https://" + address
		ca, err := e.secure(written, f.http2, address)
		if err != nil {
			return errors.Join(err, e.Close())
		}
		if _, err := fmt.Fprintf(stderr, "clients trust it by SSL_CERT_FILE=%s\n", shell.Quote(ca)); err != nil {
			return errors.Join(fmt.Errorf("standard error: %w", err), e.Close())
		}
	}
	if f.requireToken {
		path, err := written.write("credentials.json", fakegcs.NewCredentials(url), 0o600)
		if err != nil {
			return errors.Join(err, e.Close())
		}
		// STORAGE_EMULATOR_HOST tells clients to send no credentials.
		if _, err := fmt.Fprintf(stderr, "clients get tokens by GOOGLE_APPLICATION_CREDENTIALS=%s, with --endpoint=%s instead of STORAGE_EMULATOR_HOST\n", shell.Quote(path), url); err != nil {
			return errors.Join(fmt.Errorf("standard error: %w", err), e.Close())
		}
	}
	e.http.Handler = localHost(ln.Addr(), e.http.Handler)
	failed := e.Serve(ln)
	if _, err := fmt.Fprintf(stdout, "export STORAGE_EMULATOR_HOST=%s\n", url); err != nil {
		return errors.Join(fmt.Errorf("standard output: %w", err), e.Close())
	}
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	return errors.Join(err, e.Close())
}
