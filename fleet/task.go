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
	"unicode/utf8"

	"gcsup/upload"
)

// taskVersion is the version of the message schema. It changes if a field changes its
// meaning, or if a worker that does not know a new field would make a wrong object.
const taskVersion = 1

const (
	// maxFiles is the greatest number of files in a task.
	maxFiles = 1000

	// maxMessage bounds an encoded task. NATS accepts 1 MiB by default, with the headers.
	maxMessage = 1<<20 - 16<<10

	// maxPath bounds the path of a source, so that one task of one file always fits.
	maxPath = 64 << 10
)

// ErrTaskVersion means that a newer program submitted a task. It is left in the queue.
var ErrTaskVersion = errors.New("task was submitted by a newer version of this program")

// A Task describes which files to upload to which objects, with which settings. It is the
// message of the queue, and has no secret. Who works on a file, and how far it is, is
// in the saved upload of the lease store.
type Task struct {
	V int `json:"v"`

	// Settings is the template of the objects. It has the bucket, but neither a name
	// nor a generation, which each file has.
	Settings upload.Spec `json:"settings"`

	// Files are the sources: one file of any size, or small files in the order of
	// their objects' names.
	Files []File `json:"files"`
}

// File is one source and its object.
type File struct {
	Path   string `json:"path"` // absolute: the same on every machine
	Object string `json:"object"`

	// Size and ModTimeNS are those of the file when it was submitted. The upload looks
	// at the file itself. They choose the order of work, and are compared by a later
	// submit.
	Size      int64 `json:"size"`
	ModTimeNS int64 `json:"mtime_ns"`

	// Generation is that of the object at the destination when the file was submitted,
	// 0 if there was none. It is the precondition of the upload.
	Generation int64 `json:"generation,string"`
}

// ID names the task. It depends on the destinations only, so that a second submit of
// the same files has the same ID. It is a token of a NATS subject.
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

// Bytes returns the size of all files.
func (t *Task) Bytes() int64 {
	var n int64
	for _, f := range t.Files {
		n += f.Size
	}
	return n
}

// Name describes the task for people.
func (t *Task) Name() string {
	first := t.spec(t.Files[0]).URL()
	if len(t.Files) == 1 {
		return first
	}
	return fmt.Sprintf("%s and %d more", first, len(t.Files)-1)
}

// one returns a task with only one of the files.
func (t *Task) one(f File) *Task {
	return &Task{V: t.V, Settings: t.Settings, Files: []File{f}}
}

// spec returns the object to make of a file.
func (t *Task) spec(f File) upload.Spec {
	s := t.Settings
	s.Object, s.IfGenerationMatch = f.Object, &f.Generation
	return s
}

// changed returns how many files of a task differ from those of a message that makes the
// same objects. Generations do not count: a worker may have made some of the objects.
func (t *Task) changed(message []byte) int {
	earlier, err := decodeTask(message)
	if err != nil || len(earlier.Files) != len(t.Files) {
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

// fingerprint returns a digest of the files and of the generations of their objects.
// If it is equal later, the objects are those that were made of these files.
func fingerprint(files []File) string {
	h := sha256.New()
	for _, f := range files {
		// Another file may have the same size and time, as in an archive.
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

// decodeTask parses a message. It refuses what it does not know. The error of a newer
// version wraps ErrTaskVersion.
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

// validate refuses a task that no worker should begin.
func (t *Task) validate() error {
	s := t.Settings
	switch {
	case t.V != taskVersion:
		return fmt.Errorf("task: version %d, want %d", t.V, taskVersion)
	case len(t.Files) == 0 || len(t.Files) > maxFiles:
		return fmt.Errorf("task: %d files, want 1 to %d", len(t.Files), maxFiles)
	case s.Object != "" || s.Conditional() || s.NoClobber:
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
