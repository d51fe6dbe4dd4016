package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gcsup/fakegcs"
	"gcsup/fleet/internal/fleet"
	"gcsup/fleet/internal/smalldisk"
	"gcsup/internal/cli/exit"
)

// TestFullDisk fills the disk of the queue while workers upload and a tree is submitted, and frees it. The
// command reports it, and everything is finished without a restart of the command.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{Rate: 4 << 20})
	w.dir = smalldisk.Mount(t, 32<<20)
	files := map[string][]byte{}
	for i := range 40 {
		name := fmt.Sprintf("large-%02d", i)
		files[name] = w.write(name, 1<<20+i+1)
	}
	log := filepath.Join(t.TempDir(), "log")
	messages, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer messages.Close()
	reported := func(text string) bool {
		data, _ := os.ReadFile(log)
		return strings.Contains(string(data), text)
	}
	up := w.upTo(messages, "--workers=2", "--jobs=2", "--log=json")
	w.await("two workers", func(s *fleet.Status) bool { return len(s.Workers) == 2 })
	w.output("submit", "-r", w.tree+"/.", "gs://my-bucket/tree")
	w.await("some done", func(s *fleet.Status) bool { return s.Done.Files > 0 })
	before := w.consumer()
	free := smalldisk.Fill(t, w.dir)
	submit := w.command("submit", "-r", w.tree+"/.", "gs://my-bucket/other")
	if err := submit.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); !reported("the queue waits, because the disk of ") || !reported("no space left on device"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the command does not report that the disk is full")
		}
	}
	free()
	for end := time.Now().Add(time.Minute); !reported("the queue continues"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the server does not start again")
		}
	}
	if err := submit.Wait(); err != nil && submit.ProcessState.ExitCode() != exit.Temporary {
		t.Errorf("submit: %v", err)
	}
	w.output("submit", "-r", w.tree+"/.", "gs://my-bucket/other")
	if code, messages := w.run("status", "--wait"); code != exit.OK {
		t.Errorf("status --wait: exit code %d: %s", code, messages)
	}
	if s := w.status(); s.Done.Files != 2*len(files) || s.Failed != 0 || s.Tasks != 0 {
		t.Errorf("status %+v", s)
	}
	w.check(files)
	if after := w.consumer(); after == before {
		t.Errorf("the consumer is still %s: tasks whose acknowledgment was saved would not be delivered again", after)
	}
	if !up.Alive() {
		t.Error("the command has ended")
	}
}

// consumer returns the name of the consumer of the queue of gcsup-fleet up.
func (w *world) consumer() (name string) {
	w.t.Helper()
	at, err := readAddress(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	nc, err := nats.Connect(at.URL, nats.Token(at.Token))
	if err != nil {
		w.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		w.t.Fatal(err)
	}
	stream, err := js.Stream(w.t.Context(), "gcsup-default")
	if err != nil {
		w.t.Fatal(err)
	}
	for name = range stream.ConsumerNames(w.t.Context()).Name() {
	}
	return name
}

// TestUpOnFullDisk starts the command on a full disk. It ends with a message, and with a code after which
// a supervisor starts it again.
func TestUpOnFullDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{})
	w.dir = smalldisk.Mount(t, 4<<20)
	defer smalldisk.Fill(t, w.dir)()
	code, messages := w.run("up", "--state=gs://state-bucket/uploads", "--state-unsealed")
	if code != exit.IO || !strings.Contains(messages, "no space left on device") {
		t.Errorf("exit code %d: %s", code, messages)
	}
}
