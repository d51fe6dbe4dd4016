package manifest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gcsup/chunk"
	"gcsup/internal/checksum"
	"gcsup/internal/objectmeta"
)

const (
	version     = 1
	head        = `{"v":` // each line begins with it
	lineLimit   = 64 << 10
	reasonLimit = 1 << 10
)

// Status is the outcome of a file.
type Status string

// The outcomes. A file that is done or skipped is finished, unless it is skipped
// without an identity.
const (
	Done    Status = "done"    // the object was made
	Skipped Status = "skipped" // the object existed already, or Path is not a file: see Record.Reason
	Failed  Status = "failed"  // see Record.Reason
)

var statuses = []Status{Done, Skipped, Failed}

// Record is the outcome of one file.
type Record struct {
	Status Status
	Path   string         // the source file
	Source chunk.Identity // of the source, before its first byte was read; zero if it is not a file

	// Bucket and Object are the destination.
	Bucket, Object string

	Generation int64  // of the object; 0 if it is not known
	CRC32C     uint32 // of the object, if HasCRC32C
	HasCRC32C  bool

	Reason string    // why the file failed or is not a file, for people; at most 1 KiB is kept
	Time   time.Time // zero means now

	endpoint string // of the object, see Open
}

// finished reports whether the file need not be uploaded as long as it does not change.
func (r *Record) finished() bool {
	return r.Status == Done || r.Status == Skipped && r.Source != (chunk.Identity{})
}

// line is the JSON form of a record in the manifest.
type line struct {
	V           int             `json:"v"`
	Time        time.Time       `json:"time"`
	Status      Status          `json:"status"`
	Source      string          `json:"source"`
	Identity    *chunk.Identity `json:"identity,omitempty"`
	Destination string          `json:"destination"`
	Endpoint    string          `json:"endpoint,omitempty"`
	Generation  string          `json:"generation,omitempty"` // a string, because JSON numbers lose digits
	CRC32C      string          `json:"crc32c,omitempty"`
	Error       string          `json:"error,omitempty"`
}

// encode returns the line of r, with the line break.
func (r Record) encode() ([]byte, error) {
	switch {
	case !slices.Contains(statuses, r.Status):
		return nil, fmt.Errorf("record of %s: unknown status %q", r.Path, r.Status)
	case r.Bucket == "" || r.Object == "" || strings.Contains(r.Bucket, "/") || !utf8.ValidString(r.Bucket+r.Object):
		return nil, fmt.Errorf("record of %s: %q is not a destination", r.Path, "gs://"+r.Bucket+"/"+r.Object)
	}
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	l := line{
		V: version, Time: r.Time.UTC().Truncate(time.Millisecond), Status: r.Status, Source: r.Path,
		Destination: "gs://" + r.Bucket + "/" + r.Object, Endpoint: r.endpoint, Error: r.Reason,
	}
	if len(l.Error) > reasonLimit {
		l.Error = strings.ToValidUTF8(l.Error[:reasonLimit], "") + "…"
	}
	if r.Source != (chunk.Identity{}) {
		l.Identity = &r.Source
	}
	if r.Generation != 0 {
		l.Generation = strconv.FormatInt(r.Generation, 10)
	}
	if r.HasCRC32C {
		l.CRC32C = checksum.Encode(r.CRC32C)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(l); err != nil {
		return nil, fmt.Errorf("record of %s: %w", r.Path, err)
	}
	if b.Len() > lineLimit {
		return nil, fmt.Errorf("record of %.100s…: %d bytes, the limit is %d", r.Path, b.Len(), lineLimit)
	}
	return b.Bytes(), nil
}

// decode parses a line without its line break. The error of a newer version wraps
// ErrVersion; any other means that the line is damaged.
func decode(text []byte) (Record, error) {
	v, ok := lineVersion(text)
	switch {
	case !ok:
		return Record{}, errors.New("no version")
	case v > version:
		return Record{}, fmt.Errorf("%w: version %d, this program knows version %d", ErrVersion, v, version)
	}
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return Record{}, err
	}
	r := Record{Status: l.Status, Path: l.Source, Reason: l.Error, Time: l.Time, endpoint: l.Endpoint}
	if !slices.Contains(statuses, l.Status) {
		return Record{}, fmt.Errorf("unknown status %q", l.Status)
	}
	if r.Bucket, r.Object, ok = objectmeta.SplitURL(l.Destination); !ok || r.Object == "" {
		return Record{}, fmt.Errorf("%q is not a destination", l.Destination)
	}
	if l.Identity != nil {
		r.Source = *l.Identity
	}
	var err error
	if l.Generation != "" {
		if r.Generation, err = strconv.ParseInt(l.Generation, 10, 64); err != nil {
			return Record{}, err
		}
	}
	if l.CRC32C != "" {
		if r.CRC32C, err = checksum.Decode(l.CRC32C); err != nil {
			return Record{}, err
		}
		r.HasCRC32C = true
	}
	return r, nil
}

// lineVersion returns the version of a line, which may be incomplete. It reads no
// other field, because a newer version may have others.
func lineVersion(text []byte) (int, bool) {
	rest, ok := bytes.CutPrefix(text, []byte(head))
	if !ok {
		return 0, false
	}
	end := bytes.IndexAny(rest, ",}")
	if end < 0 {
		return 0, false
	}
	v, err := strconv.Atoi(string(rest[:end]))
	return v, err == nil && v > 0
}

// The records are sorted in a binary form: the length of the key, the key, packed, and
// the path of the source.

// packed has the other fields that Skip and Check need.
type packed struct {
	Status     uint8 // index in statuses
	Source     chunk.Identity
	Generation int64
	HasCRC32C  bool
	CRC32C     uint32
}

// appendKey appends the key of a destination. Keys sort by bucket and object,
// because a bucket name has no NUL.
func appendKey(b []byte, bucket, object string) []byte {
	b = append(b, bucket...)
	b = append(b, 0)
	return append(b, object...)
}

func (r Record) pack(b []byte) []byte {
	key := appendKey(nil, r.Bucket, r.Object)
	b = binary.AppendUvarint(b, uint64(len(key)))
	b = append(b, key...)
	b, _ = binary.Append(b, binary.BigEndian, packed{uint8(slices.Index(statuses, r.Status)), r.Source, r.Generation, r.HasCRC32C, r.CRC32C})
	return append(b, r.Path...)
}

// packedKey returns the key of a packed record, and the bytes after it.
func packedKey(b []byte) (key, rest []byte) {
	size, n := binary.Uvarint(b)
	return b[n : n+int(size)], b[n+int(size):]
}

func comparePacked(a, b []byte) int {
	ka, _ := packedKey(a)
	kb, _ := packedKey(b)
	return bytes.Compare(ka, kb)
}

// unpack returns the packed record.
func unpack(b []byte) Record {
	key, b := packedKey(b)
	bucket, object, _ := bytes.Cut(key, []byte{0})
	var p packed
	n, _ := binary.Decode(b, binary.BigEndian, &p)
	return Record{
		Status: statuses[p.Status], Source: p.Source, Bucket: string(bucket), Object: string(object),
		Generation: p.Generation, HasCRC32C: p.HasCRC32C, CRC32C: p.CRC32C, Path: string(b[n:]),
	}
}
