package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

func sampleTask() *Task {
	return &Task{
		V:     taskVersion,
		Fleet: "default", Submission: "0123",
		Endpoint: "https://storage.googleapis.com",
		Settings: upload.Spec{Bucket: "my-bucket", CacheControl: "no-store", Metadata: map[string]string{"a": "b<c"}, CustomTime: time.Unix(1, 0).UTC()},
		Files: []File{
			{Path: "/data/ä", Object: "data/ä", Size: 5, ModTimeNS: -7},
			{Path: "/data/b", Object: "data/ü", Size: 1 << 42, ModTimeNS: 1 << 60, Generation: 1<<62 + 1},
		},
	}
}

// TestTaskID checks that the ID depends only on the destinations.
func TestTaskID(t *testing.T) {
	id := sampleTask().ID()
	if id != "af0be252fcd48a7fb3173a78036f3a0d" {
		t.Errorf("ID %s: tasks in queues have another one", id)
	}
	for name, c := range map[string]struct {
		change func(*Task)
		same   bool
	}{
		"path":       {func(t *Task) { t.Files[0].Path = "/other" }, true},
		"size":       {func(t *Task) { t.Files[0].Size++ }, true},
		"generation": {func(t *Task) { t.Files[0].Generation++ }, true},
		"settings":   {func(t *Task) { t.Settings.ContentType = "text/csv" }, true},
		"object":     {func(t *Task) { t.Files[0].Object += "x" }, false},
		"bucket":     {func(t *Task) { t.Settings.Bucket += "x" }, false},
		"files":      {func(t *Task) { t.Files = t.Files[:1] }, false},
	} {
		task := sampleTask()
		c.change(task)
		if same := task.ID() == id; same != c.same {
			t.Errorf("%s: the ID stays: %v, want %v", name, same, c.same)
		}
	}
}

func TestDecodeTaskRefuses(t *testing.T) {
	valid, err := sampleTask().encode()
	require.NoError(t, err)
	for name, text := range map[string]string{
		"empty":           ``,
		"not JSON":        `x`,
		"unknown field":   strings.Replace(string(valid), `{"v":3`, `{"v":3,"priority":2`, 1),
		"unknown in file": strings.Replace(string(valid), `"size":5`, `"size":5,"crc32c":"x"`, 1),
		"two values":      string(valid) + `{}`,
		"old version":     strings.Replace(string(valid), `{"v":3`, `{"v":2`, 1),
		"newer version":   strings.Replace(string(valid), `{"v":3`, `{"v":4`, 1),
		"part of two":     strings.Replace(string(valid), `"files":[`, `"part":{"index":0,"siblings":[]},"files":[`, 1),
		"no endpoint":     strings.Replace(string(valid), `"endpoint":"https://storage.googleapis.com",`, ``, 1),
		"no files":        `{"v":3,"endpoint":"x","settings":{"bucket":"my-bucket","object":""},"files":[]}`,
		"relative path":   strings.Replace(string(valid), `"/data/b"`, `"data/b"`, 1),
		"unsorted":        strings.Replace(string(valid), `"data/ü"`, `"data/a"`, 1),
		"negative size":   strings.Replace(string(valid), `"size":5`, `"size":-5`, 1),
		"bad object":      strings.Replace(string(valid), `"data/ü"`, `"data/ü\n"`, 1),
		"precondition":    strings.Replace(string(valid), `"object":"",`, `"object":"","if_generation_match":3,`, 1),
		"name":            strings.Replace(string(valid), `"object":"",`, `"object":"x",`, 1),
		"too large":       strings.Replace(string(valid), `"no-store"`, `"`+strings.Repeat("x", maxMessage)+`"`, 1),
	} {
		if text == string(valid) {
			t.Fatalf("%s: the message was not changed", name)
		}
		if _, err := decodeTask([]byte(text)); err == nil {
			t.Errorf("%s: it was decoded", name)
		}
	}
}

// TestTaskHasNoKey checks that a customer-supplied key cannot get into a message.
func TestTaskHasNoKey(t *testing.T) {
	key, err := session.NewEncryptionKey(make([]byte, 32))
	require.NoError(t, err)
	task := sampleTask()
	task.Settings.EncryptionKey = key
	if _, err := task.encode(); err == nil {
		t.Error("a task with an encryption key was encoded")
	}
}

func TestFingerprint(t *testing.T) {
	a := sampleTask().Files
	for i, change := range []func([]File){
		func(f []File) { f[1].Object += "x" },
		func(f []File) { f[1].Path += "x" },
		func(f []File) { f[1].Size++ },
		func(f []File) { f[1].ModTimeNS++ },
		func(f []File) { f[1].Generation++ },
	} {
		b := sampleTask().Files
		if fingerprint(upload.Spec{}, a) != fingerprint(upload.Spec{}, b) {
			t.Fatal("equal files have different fingerprints")
		}
		if change(b); fingerprint(upload.Spec{}, a) == fingerprint(upload.Spec{}, b) {
			t.Error(fmt.Sprint("change ", i, " does not change the fingerprint"))
		}
	}
	if fingerprint(upload.Spec{}, a) == fingerprint(upload.Spec{CacheControl: "no-store"}, a) {
		t.Error("a setting does not change the fingerprint")
	}
}

func FuzzDecodeTask(f *testing.F) {
	valid, err := sampleTask().encode()
	require.NoError(f, err)
	f.Add(valid)
	f.Add([]byte(`{"v":3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		task, err := decodeTask(data)
		if err != nil {
			return
		}
		again, err := task.encode()
		if err != nil {
			return // longer than the limit when it is encoded again
		}
		if same, err := decodeTask(again); err != nil || same.ID() != task.ID() {
			t.Errorf("encoded again: %v", err)
		}
	})
}
