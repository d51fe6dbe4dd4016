package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"cloud.google.com/go/storage"

	"gcsup/internal/benchrun"
	"gcsup/session/state"
	"gcsup/upload"
)

// roles are the ways that this program is itself. Their arguments are the endpoint, the
// file and the name of the object.
var roles = map[string]func(args []string) error{"bare": barePut, "upload": uploadFile, "writer": writer}

func asRole(name string, server benchrun.Server, file, role string) benchrun.Way {
	return benchrun.Way{Name: name, Server: server, Command: func(endpoint string, n int) *exec.Cmd {
		return benchrun.Role(role, endpoint, file, fmt.Sprint("o", n))
	}}
}

// barePut measures the minimum cost of a checked upload.
func barePut(args []string) error {
	endpoint, path, object := args[0], args[1], args[2]
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	hc := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{}).DialContext, WriteBufferSize: 64 << 10}}
	return benchrun.BarePut(context.Background(), hc, endpoint, object, f, *size)
}

// uploadFile uploads a file as a program does that embeds package upload, with a
// durable store.
func uploadFile(args []string) error {
	endpoint, path, object := args[0], args[1], args[2]
	store, err := state.OpenDir(filepath.Join(filepath.Dir(path), "uploads"))
	if err != nil {
		return err
	}
	defer store.Close()
	up, err := upload.New(&http.Client{Transport: upload.NewTransport()}, &upload.Options{Endpoint: endpoint, Store: store})
	if err != nil {
		return err
	}
	_, err = up.File(context.Background(), path, upload.Spec{Bucket: "bench", Object: object})
	return err
}

// writer uploads a file with the official library.
func writer(args []string) error {
	path, object := args[1], args[2]
	ctx := context.Background()
	client, err := storage.NewClient(ctx) // STORAGE_EMULATOR_HOST names the endpoint
	if err != nil {
		return err
	}
	defer client.Close()
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := client.Bucket("bench").Object(object).NewWriter(ctx)
	if _, err := io.Copy(w, f); err != nil {
		return err
	}
	return w.Close()
}

// command uploads a file with gcsup.
func command(name string, server benchrun.Server, file string, flags ...string) benchrun.Way {
	return benchrun.Way{Name: name, Server: server, Command: func(_ string, n int) *exec.Cmd {
		return exec.Command(*gcsup, slices.Concat([]string{"cp", "--quiet"}, flags, []string{file, fmt.Sprint("gs://bench/o", n)})...)
	}}
}

// curl computes no checksum.
func curl(server benchrun.Server, file string) benchrun.Way {
	return benchrun.Way{Name: "curl", Server: server, Optional: true, Command: func(endpoint string, n int) *exec.Cmd {
		return exec.Command("curl", "--silent", "--show-error", "--fail", "--request", "POST", "--upload-file", file,
			"--output", os.DevNull, fmt.Sprint(endpoint, "/upload/storage/v1/b/bench/o?uploadType=media&name=o", n))
	}}
}

// gcloud also compares MD5s, so that its emulator needs more time.
func gcloud(name string, server benchrun.Server, file, composite string) benchrun.Way {
	server.MD5 = true
	return benchrun.Way{Name: name, Server: server, Optional: true, Command: func(_ string, n int) *exec.Cmd {
		c := exec.Command("gcloud", "storage", "cp", file, fmt.Sprint("gs://bench/o", n))
		c.Env = []string{"CLOUDSDK_STORAGE_PARALLEL_COMPOSITE_UPLOAD_ENABLED=" + composite}
		return c
	}}
}
