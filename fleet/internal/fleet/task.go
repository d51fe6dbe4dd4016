package fleet

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"gcsup/upload"
)

// taskVersion is the version of the message format. It changes if a field changes its
// meaning, or if a worker without knowledge of a new field would make a wrong object.
const taskVersion = 2

const (
	// maxFiles is the maximum number of files in a task.
	maxFiles = 1000

	// maxMessage bounds an encoded task in bytes. NATS accepts 1 MiB by default, including
	// headers.
	maxMessage = 1<<20 - 16<<10

	// maxPath bounds the path of a source in bytes, so that a task with one file always fits.
	maxPath = 64 << 10
)

// ErrTaskVersion means that a newer version submitted a task. A worker returns it to the queue.
var ErrTaskVersion = errors.New("task was submitted by a newer version of this program")

// A Task has the files to upload, their objects, and the settings of the objects. It
// is the content of a message, and has no secrets. The saved upload in the lease
// store, and not the Task, has the worker and the progress of an upload.
type Task struct {
	V int `json:"v"`

	// Endpoint is the scheme and host of the service to which the files were submitted. In
	// tasks of version 1 it is "": any worker uploads them.
	Endpoint string `json:"endpoint,omitempty"`

	// Settings has the bucket and the attributes of all objects. The name and the generation of
	// each object are in Files.
	Settings upload.Spec `json:"settings"`

	// Files has one file of any size, or small files sorted by Object.
	Files []File `json:"files"`
}

// File is a source and its object.
type File struct {
	Path   string `json:"path"` // absolute, and the same on every machine
	Object string `json:"object"`

	// Size in bytes and ModTimeNS in nanoseconds since 1970 are those of the file when it
	// was submitted. They are for grouping, progress and comparison with later submits.
	// An upload reads the current ones from the file.
	Size      int64 `json:"size"`
	ModTimeNS int64 `json:"mtime_ns"`

	// Generation is that of the object at the destination when the file was submitted, or 0 if
	// there was none. It is the precondition of the upload.
	Generation int64 `json:"generation,string"`
}

// ID identifies the task. It is a hash of the destinations only, so that a second submit of the same
// files has the same ID. It is valid as a token of a NATS subject.
func (t *Task) ID() string {
	names := make([]string, len(t.Files))
	for i, f := range t.Files {
		names[i] = f.Object
	}
	return taskID(t.Settings.Bucket, names)
}

// taskID returns the ID of the task that makes these objects.
func taskID(bucket string, objects []string) string {
	h := sha256.New()
	_, _ = io.WriteString(h, bucket)
	for _, name := range objects {
		// No name has a line break, see [upload.Spec.Validate].
		_, _ = io.WriteString(h, "\n"+name)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// fileID returns the ID of a task with the bucket of t and only the file f.
func (t *Task) fileID(f File) string { return taskID(t.Settings.Bucket, []string{f.Object}) }

// index returns the index of a file of t by its object.
func (t *Task) index(f File) int {
	i, _ := slices.BinarySearchFunc(t.Files, f, func(a, b File) int { return strings.Compare(a.Object, b.Object) })
	return i
}

// indices returns the indices of the files of outcomes. It is not nil.
func (t *Task) indices(of []outcome) []int {
	all := make([]int, len(of))
	for i, o := range of {
		all[i] = t.index(o.file)
	}
	return all
}

// Bytes returns the total size of the files.
func (t *Task) Bytes() int64 {
	var n int64
	for _, f := range t.Files {
		n += f.Size
	}
	return n
}

// Name describes the task for people, by its first destination and the number of the others.
func (t *Task) Name() string {
	first := t.spec(t.Files[0]).URL()
	if len(t.Files) == 1 {
		return first
	}
	return fmt.Sprintf("%s and %d more", first, len(t.Files)-1)
}

// one returns a task with the same settings and only the file f.
func (t *Task) one(f File) *Task {
	return &Task{V: t.V, Endpoint: t.Endpoint, Settings: t.Settings, Files: []File{f}}
}

// spec returns the Spec of the object of a file.
func (t *Task) spec(f File) upload.Spec {
	s := t.Settings
	s.Object, s.IfGenerationMatch = f.Object, &f.Generation
	return s
}

// changed returns the number of files of t that differ from those in a message for
// the same objects. If the settings or the endpoints differ, it returns the number of all files.
// Generations are ignored, because a worker may have made some of the objects.
func (t *Task) changed(message []byte) int {
	earlier, err := decodeTask(message)
	if err != nil || len(earlier.Files) != len(t.Files) || earlier.Endpoint != "" && earlier.Endpoint != t.Endpoint {
		return len(t.Files)
	}
	before, errBefore := json.Marshal(earlier.Settings)
	now, err := json.Marshal(t.Settings)
	if err != nil || errBefore != nil || !bytes.Equal(before, now) {
		return len(t.Files)
	}
	n := 0
	for i, f := range t.Files {
		if f.Generation = earlier.Files[i].Generation; f != earlier.Files[i] {
			n++
		}
	}
	return n
}

// fingerprint returns a digest of the settings, the files and the generations of their objects. As long as it is
// the same, the objects are those that were made from these files with these settings.
func fingerprint(settings upload.Spec, files []File) string {
	h := sha256.New()
	_ = json.NewEncoder(h).Encode(settings) // a valid task has settings that can be encoded
	for _, f := range files {
		// Include the path, because two files may have the same size and time.
		fmt.Fprintf(h, "%s\n%q %d %d %d\n", f.Object, f.Path, f.Size, f.ModTimeNS, f.Generation)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// encode returns the message of a valid task.
func (t *Task) encode() ([]byte, error) {
	if err := t.validate(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(t); err != nil {
		return nil, err
	}
	if b.Len() > maxMessage {
		return nil, fmt.Errorf("task of %s: the message has %d bytes, the limit is %d", t.Name(), b.Len(), maxMessage)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// decodeTask parses and validates a message. It refuses unknown fields. The error for a newer version
// wraps ErrTaskVersion.
func decodeTask(data []byte) (*Task, error) {
	if len(data) > maxMessage {
		return nil, fmt.Errorf("task: the message has %d bytes, the limit is %d", len(data), maxMessage)
	}
	var head struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("task: %w", err)
	}
	if head.V > taskVersion {
		return nil, fmt.Errorf("%w: version %d, this program knows version %d", ErrTaskVersion, head.V, taskVersion)
	}
	t := new(Task)
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(t); err != nil {
		return nil, fmt.Errorf("task: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("task: the message has more than one JSON value")
	}
	return t, t.validate()
}

// validate returns an error if t is not a valid task.
func (t *Task) validate() error {
	s := t.Settings
	switch {
	case t.V < 1 || t.V > taskVersion:
		return fmt.Errorf("task: version %d, want 1 to %d", t.V, taskVersion)
	case (t.Endpoint == "") != (t.V == 1):
		return fmt.Errorf("task: version %d with the endpoint %q", t.V, t.Endpoint)
	case len(t.Files) == 0 || len(t.Files) > maxFiles:
		return fmt.Errorf("task: %d files, want 1 to %d", len(t.Files), maxFiles)
	case s.Object != "" || len(s.Conditions()) > 0 || s.NoClobber:
		return errors.New("task: the settings have a name or a precondition, which belong to the files")
	case !s.EncryptionKey.IsZero():
		return errors.New("task: objects with a customer-supplied encryption key are not supported, because the workers would need the key")
	}
	last := ""
	for _, f := range t.Files {
		if err := t.spec(f).Validate(); err != nil {
			return fmt.Errorf("task: %w", err)
		}
		switch {
		case !filepath.IsAbs(f.Path) || len(f.Path) > maxPath:
			return fmt.Errorf("task: %q is not an absolute path of at most %d bytes", f.Path, maxPath)
		case !utf8.ValidString(f.Path):
			return fmt.Errorf("task: the path %q is not valid UTF-8", f.Path)
		case f.Size < 0 || f.Generation < 0:
			return fmt.Errorf("task: %s: the size or the generation is negative", f.Path)
		case f.Object <= last:
			return fmt.Errorf("task: the objects %q and %q are not sorted", last, f.Object)
		}
		last = f.Object
	}
	return nil
}
