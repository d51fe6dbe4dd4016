// Command live holds our picture of Cloud Storage against the real service: it
// runs the cases of fakegcs/fakegcstest on a bucket of the user's, and then
// uploads three files with gcsup, killing it each time half way. It prints every
// fact in which the service differs, and deletes what it has made.
//
//	go run ./internal/compat/live gs://BUCKET
//
// Credentials are the application default ones. With STORAGE_EMULATOR_HOST it
// runs on an emulator, without credentials. It uploads about 200 MiB. The exit
// code is 1 when something differs.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/oauth2/google"

	"gcsup/fakegcs"
	"gcsup/fakegcs/fakegcstest"
)

func main() {
	size := flag.Int64("size", 64<<20, "bytes of each file that is uploaded with a kill")
	flag.Parse()
	bucket, ok := strings.CutPrefix(flag.Arg(0), "gs://")
	bucket = strings.TrimSuffix(bucket, "/")
	if !ok || flag.NArg() != 1 || bucket == "" || strings.Contains(bucket, "/") {
		fmt.Fprintln(os.Stderr, "usage: live [-size BYTES] gs://BUCKET")
		os.Exit(64)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	differences, err := run(ctx, bucket, *size)
	if err != nil {
		fmt.Fprintln(os.Stderr, "live:", err)
		os.Exit(1)
	}
	fmt.Printf("%d differences\n", differences)
	if differences > 0 {
		os.Exit(1)
	}
}

func run(ctx context.Context, bucket string, size int64) (differences int, err error) {
	target := fakegcstest.Target{
		URL: "https://storage.googleapis.com", Bucket: bucket, Prefix: "gcsup-live-" + random() + "/", Client: http.DefaultClient, Patience: 30 * time.Second,
	}
	if host := os.Getenv("STORAGE_EMULATOR_HOST"); host != "" {
		if !strings.Contains(host, "://") {
			host = "http://" + host
		}
		target.URL = strings.TrimSuffix(host, "/")
	} else if target.Client, err = google.DefaultClient(ctx, "https://www.googleapis.com/auth/devstorage.read_write"); err != nil {
		return 0, fmt.Errorf("credentials: %w", err)
	}
	defer func() {
		// Also what an interrupted run has made.
		err = errors.Join(err, deleteAll(context.WithoutCancel(ctx), target))
	}()
	for _, c := range fakegcstest.Cases() {
		if ctx.Err() != nil {
			return differences, ctx.Err()
		}
		if err := c.Check(ctx, target); err != nil {
			differences++
			fmt.Printf("DIFFERS %s: %s\n  seen: %s\n  source of the fact: %s\n", c.Name, c.Fact, strings.ReplaceAll(err.Error(), "\n", "\n        "), c.Source)
		} else {
			fmt.Printf("ok      %s\n", c.Name)
		}
	}
	dir, err := os.MkdirTemp("", "gcsup-live-")
	if err != nil {
		return differences, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "gcsup")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "gcsup/cmd/gcsup").CombinedOutput(); err != nil {
		return differences, fmt.Errorf("build gcsup: %w\n%s", err, out)
	}
	for i := range 3 {
		name := fmt.Sprintf("%supload-%d", target.Prefix, i+1)
		if note, err := killedUpload(ctx, target, program, dir, name, size); err != nil {
			differences++
			fmt.Printf("DIFFERS upload %d, killed and run again: %v\n", i+1, err)
		} else {
			fmt.Printf("ok      upload %d, killed and run again: %s\n", i+1, note)
		}
	}
	return differences, nil
}

func random() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// killedUpload uploads a file of random bytes, kills gcsup at a random moment,
// runs the same command again and compares the object.
func killedUpload(ctx context.Context, target fakegcstest.Target, program, dir, name string, size int64) (note string, err error) {
	path := filepath.Join(dir, "source")
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	_, err = io.CopyN(io.MultiWriter(f, sum), rand.Reader, size)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	args := []string{"cp", "--json", "--state-dir", filepath.Join(dir, "state"), path, "gs://" + target.Bucket + "/" + name}
	first := exec.CommandContext(ctx, program, args...)
	if err := first.Start(); err != nil {
		return "", err
	}
	killed := time.AfterFunc(time.Duration(mathrand.Int64N(int64(3*time.Second))), func() { _ = first.Process.Kill() })
	completed := first.Wait() == nil
	killed.Stop()

	out, err := exec.CommandContext(ctx, program, args...).Output()
	if err != nil {
		return "", fmt.Errorf("second run: %w\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	var result struct {
		ResumedFrom int64 `json:"resumed_from"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &result); err != nil {
		return "", fmt.Errorf("result of the second run: %w", err)
	}
	var object fakegcs.Object
	if err := getJSON(ctx, target, "/o/"+url.PathEscape(name), &object); err != nil {
		return "", err
	}
	if object.Size != size || object.CRC32C != fakegcs.CRC32C(sum.Sum32()) {
		return "", fmt.Errorf("the object has %d bytes with crc32c %s, the file %d with %s", object.Size, object.CRC32C, size, fakegcs.CRC32C(sum.Sum32()))
	}
	if completed {
		return "the first run was faster than the kill", nil
	}
	return fmt.Sprintf("resumed from %d of %d bytes", result.ResumedFrom, size), nil
}

// getJSON reads a resource below the target's bucket.
func getJSON(ctx context.Context, target fakegcstest.Target, path string, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.URL+"/storage/v1/b/"+target.Bucket+path, nil)
	if err != nil {
		return err
	}
	resp, err := target.Client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(v)
}

// deleteAll deletes the objects below the target's prefix.
func deleteAll(ctx context.Context, target fakegcstest.Target) error {
	for {
		var list struct{ Items []fakegcs.Object }
		if err := getJSON(ctx, target, "/o?prefix="+url.QueryEscape(target.Prefix), &list); err != nil {
			return fmt.Errorf("clean up: %w", err)
		}
		if len(list.Items) == 0 {
			return nil
		}
		for _, o := range list.Items {
			req, err := http.NewRequestWithContext(ctx, http.MethodDelete, target.URL+"/storage/v1/b/"+target.Bucket+"/o/"+url.PathEscape(o.Name), nil)
			if err != nil {
				return err
			}
			resp, err := target.Client.Do(req)
			if err != nil {
				return fmt.Errorf("clean up: %w", err)
			}
			resp.Body.Close()
			if resp.StatusCode/100 != 2 && resp.StatusCode != http.StatusNotFound {
				return fmt.Errorf("clean up: delete %s: %s", o.Name, resp.Status)
			}
		}
	}
}
