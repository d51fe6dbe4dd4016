// Package live checks the facts of fakegcs/fakegcstest on the real service, in a
// bucket of the user. It then uploads three files with gcsup, which it kills during
// the upload and runs again. It prints a line for each fact. For a difference it
// prints what it observed and the source of the fact. It deletes what it created,
// even after an interrupt.
//
//	go run ./internal/compat live [flags] gs://BUCKET
//
// It uses Application Default Credentials. They must have permission to write,
// change and delete objects in the bucket, and to create buckets in the project,
// because some cases create a bucket. Without a project these are not checked.
//
// It uploads about 250 MiB, and more if an upload ends before gcsup can be killed;
// see -max-size.
//
// With STORAGE_EMULATOR_HOST it runs on an emulator, without credentials.
//
// Exit codes: 0 all facts hold; 1 a fact differs; 2 no fact differs, but one was
// not checked, an object could not be deleted, or the run failed; 64 the command
// line is wrong; 130 interrupted.
package live

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"gcsup/fakegcs/fakegcstest"
)

const (
	// Changing metadata and creating buckets requires more than read_write,
	// https://cloud.google.com/storage/docs/oauth-scopes.
	scope = "https://www.googleapis.com/auth/devstorage.full_control"
	// Files up to 8 MiB go in one request, which can't be resumed.
	smallest = 16 << 20
	uploads  = 3
)

const (
	exitDiffers     = 1
	exitIncomplete  = 2
	exitUsage       = 64
	exitInterrupted = 130
)

// Main is the program. It returns its exit code.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the program, even during the clean-up.
	context.AfterFunc(ctx, stop)
	return run(ctx, args, os.Stdout, os.Stderr)
}

// config is the command line.
type config struct {
	bucket, project, program string
	size, maxSize            int64
	only                     *regexp.Regexp
	json                     bool
}

func parse(args []string, stderr io.Writer) (*config, error) {
	c := &config{}
	fs := flag.NewFlagSet("live", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // errors are returned and printed once
	fs.StringVar(&c.project, "project", "", "create the cases' buckets in this `PROJECT` (default: that of the credentials, else GOOGLE_CLOUD_PROJECT, else CLOUDSDK_CORE_PROJECT)")
	fs.StringVar(&c.program, "gcsup", "", "test this `FILE` (default: build it from the source)")
	fs.Int64Var(&c.size, "size", 64<<20, "`BYTES` of a file that is uploaded with a kill, at least 16777216")
	fs.Int64Var(&c.maxSize, "max-size", 1<<30, "upload up to `BYTES` if a smaller file is finished before the kill")
	fs.BoolVar(&c.json, "json", false, "print JSON lines")
	fs.Func("run", "check only names that match this `REGEXP`; the uploads are killed-upload-1 to killed-upload-3", func(s string) (err error) {
		c.only, err = regexp.Compile(s)
		return err
	})
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fs.SetOutput(stderr)
			fmt.Fprintln(stderr, "usage: live [flags] gs://BUCKET")
			fs.PrintDefaults()
		}
		return nil, err
	}
	bucket, isURL := strings.CutPrefix(fs.Arg(0), "gs://")
	c.bucket = strings.TrimSuffix(bucket, "/")
	switch {
	case fs.NArg() != 1 || !isURL || c.bucket == "" || strings.Contains(c.bucket, "/"):
		return nil, fmt.Errorf("want one bucket, as gs://BUCKET, after the flags; got %q", fs.Args())
	case c.size < smallest:
		return nil, fmt.Errorf("-size %d: want at least %d, since smaller files go in one request", c.size, smallest)
	case c.maxSize < c.size:
		return nil, fmt.Errorf("-max-size %d: want at least -size, %d", c.maxSize, c.size)
	}
	return c, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	c, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "live:", err)
		return exitUsage
	}
	target, err := newTarget(ctx, c)
	if err != nil {
		fmt.Fprintln(stderr, "live:", err)
		return exitIncomplete
	}
	r := &report{w: stdout, json: c.json}
	err = check(ctx, c, target, r)
	r.summary()
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "live: interrupted; what was not reported was not checked")
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(stderr, "live:", err)
	}
	switch {
	case r.differs > 0:
		return exitDiffers
	case err != nil || r.err != nil || r.notChecked+r.notDeleted > 0:
		return exitIncomplete
	}
	return 0
}

// newTarget returns the service with the user's credentials, or an emulator.
func newTarget(ctx context.Context, c *config) (fakegcstest.Target, error) {
	target := fakegcstest.Target{Bucket: c.bucket, Prefix: "gcsup-live-" + strings.ToLower(rand.Text()[:10]) + "/"}
	if host := os.Getenv("STORAGE_EMULATOR_HOST"); host != "" {
		if !strings.Contains(host, "://") {
			host = "http://" + host
		}
		target.URL, target.Client, target.Project = strings.TrimSuffix(host, "/"), http.DefaultClient, cmp.Or(c.project, "test")
		return target, nil
	}
	// The clean-up after an interrupt needs tokens too.
	ctx = context.WithoutCancel(ctx)
	creds, err := google.FindDefaultCredentials(ctx, scope)
	if err != nil {
		return target, fmt.Errorf("no credentials (run \"gcloud auth application-default login\"): %w", err)
	}
	target.URL, target.Client, target.Patience = "https://storage.googleapis.com", oauth2.NewClient(ctx, creds.TokenSource), 30*time.Second
	target.Project = cmp.Or(c.project, creds.ProjectID, os.Getenv("GOOGLE_CLOUD_PROJECT"), os.Getenv("CLOUDSDK_CORE_PROJECT"))
	return target, nil
}

// check checks all facts on the target and cleans up. It returns an error if it
// could not complete.
func check(ctx context.Context, c *config, target fakegcstest.Target, r *report) (err error) {
	b := &bucket{target}
	about, err := b.describe(ctx)
	if err != nil {
		return err
	}
	r.note("%s, %s, %s", time.Now().UTC().Format(time.RFC3339), target.URL, about)
	defer func() { b.empty(context.WithoutCancel(ctx), r) }()
	for _, cs := range fakegcstest.Cases() {
		if !c.wants(cs.Name) {
			continue
		}
		err := cs.Check(ctx, target)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fakegcstest.ErrNotChecked):
			r.add(line{Type: notChecked, Name: cs.Name, Fact: cs.Fact, Seen: err.Error(), Do: "give -project PROJECT, or set GOOGLE_CLOUD_PROJECT, with credentials that may create buckets in it"})
		case err != nil:
			r.add(line{Type: differs, Name: cs.Name, Fact: cs.Fact, Seen: err.Error(), Source: cs.Source})
		default:
			r.add(line{Type: held, Name: cs.Name, Fact: cs.Fact})
		}
	}
	err = checkUploads(ctx, c, target, r)
	if err == nil && r.held+r.differs+r.notChecked == 0 {
		return fmt.Errorf("-run %s: nothing has such a name", c.only)
	}
	return err
}

func (c *config) wants(name string) bool { return c.only == nil || c.only.MatchString(name) }

// checkUploads runs the uploads with gcsup.
func checkUploads(ctx context.Context, c *config, target fakegcstest.Target, r *report) error {
	dir, err := os.MkdirTemp("", "gcsup-live-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	u := &killedUpload{target: target, program: c.program, dir: dir, size: c.size, maxSize: c.maxSize}
	for i := range uploads {
		name := fmt.Sprintf("killed-upload-%d", i+1)
		if !c.wants(name) {
			continue
		}
		if u.program == "" {
			u.program = filepath.Join(dir, "gcsup")
			if out, err := exec.CommandContext(ctx, "go", "build", "-o", u.program, "gcsup/cmd/gcsup").CombinedOutput(); err != nil {
				return fmt.Errorf("build gcsup: %w\n%s", err, out)
			}
		}
		const fact = "If gcsup is killed in mid-upload and run again, it resumes at the committed offset and creates the right object."
		story, err := u.check(ctx, name)
		missed := new(missedError)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &missed):
			r.add(line{Type: notChecked, Name: name, Fact: fact, Seen: err.Error(), Do: fmt.Sprintf("run again with a larger -size and -max-size (%d and %d now), or on a slower network", c.size, c.maxSize)})
		case err != nil:
			r.add(line{Type: differs, Name: name, Fact: fact, Seen: err.Error(), Source: "https://cloud.google.com/storage/docs/performing-resumable-uploads#status-check"})
		default:
			r.add(line{Type: held, Name: name, Fact: fact, Seen: story})
		}
	}
	return nil
}
