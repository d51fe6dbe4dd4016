package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"time"
	"unicode/utf8"

	"gcsup/chunk"
	"gcsup/internal/multipart"
	"gcsup/session"
	"gcsup/session/internal/secret"
)

// lifetime is the lifetime of a session: the service drops it a week after it
// was started.
// https://cloud.google.com/storage/docs/resumable-uploads#introduction
const lifetime = 7 * 24 * time.Hour

// Upload is a saved upload: it has everything that another process needs to resume it. Another
// machine with a copy of the source can resume it too, see Uploader.Import of package
// upload.
type Upload struct {
	ID       string       `json:"id"`       // derived from source and destination; not a secret
	Endpoint string       `json:"endpoint"` // scheme and host
	Spec     session.Spec `json:"spec"`     // the object, as given when the session was started

	// Session is the session of the whole object. If there are Parts, only its Created is
	// used.
	Session

	SourcePath     string         `json:"source_path"`               // absolute; "" if SourceIdentity is set
	SourceIdentity string         `json:"source_identity,omitempty"` // name that the caller gave to a source that is not a file; may be "" with a Spool
	SourceVersion  string         `json:"source_version,omitempty"`  // version of the content of a file, given by the caller; "" if there is none
	Source         chunk.Identity `json:"source"`                    // identity of the source when the session was started; only the size for SourceIdentity

	// MovedTo is the ID under which the session continues. The saved upload is used only if
	// there is none under that ID. MovedFrom is the ID of a saved upload that must be deleted
	// before this one is used. Both are "" unless Uploader.TakeOver of package upload was
	// interrupted.
	MovedTo   string `json:"moved_to,omitempty"`
	MovedFrom string `json:"moved_from,omitempty"`

	// Spool is set for a stream whose bytes are kept on disk until the service has committed
	// them. There is then no other source. Session has no URI until the session is started.
	// HighWater may be too low: every byte on disk may have been sent.
	Spool *Spool `json:"spool,omitempty"`

	// Gzip is set if Spec.Gzip is, and there is no Spool. The offsets and the checkpoints are then those
	// of the compressed bytes, and Source is the file.
	Gzip *GzipState `json:"gzip,omitempty"`

	// Parts is set if the file, or the stream in the Spool, is sent in parts.
	Parts *Parts `json:"-"`
}

// GzipState is the part of a saved upload that describes a compressed source.
type GzipState struct {
	// Size is the compressed size; 0 until the whole source is compressed.
	Size int64 `json:"size,omitempty"`

	// Source is a checkpoint of the file. The compressed bytes of the file up to there end at
	// Upload.HighWater, or about at the end of the last of Upload.Parts.
	Source chunk.Checkpoint `json:"source"`
}

// Spool is the part of a saved upload that describes a stream whose bytes are kept on disk.
type Spool struct {
	// Dir is the absolute path of a directory, in which the ID of the upload names the
	// directory of the stream.
	Dir string `json:"dir"`
}

// Expires returns when the service drops the session, for display: a week after
// it was started. It is zero for a multipart upload, which the service keeps. Do not
// delete a saved upload because of it: the local clock may be wrong, and the service
// decides.
func (t *Upload) Expires() time.Time {
	if t.Parts != nil && (t.Parts.ofStream() || !t.Parts.Upload.IsZero()) {
		return time.Time{}
	}
	return t.Created.Add(lifetime)
}

// ObjectSize returns the size of the object, or -1 if it is unknown because the
// source is not completely compressed yet, or is a stream.
func (t *Upload) ObjectSize() int64 {
	switch {
	case t.Spool != nil, t.Parts != nil && t.Parts.ofStream():
		return -1
	case t.Gzip == nil:
		return t.Source.Size
	case t.Gzip.Size == 0:
		return -1
	}
	return t.Gzip.Size
}

const (
	version   = 1
	beginning = `{"v":` // the first bytes of each encoded saved upload
)

// envelope is the saved form of a saved upload. The digest covers the exact bytes of
// the saved upload, so that Decode detects a flipped bit or a truncated file. It is
// not a signature: any writer of the file can compute it.
type envelope struct {
	Version int             `json:"v"`
	SHA256  string          `json:"sha256"`
	Upload  json.RawMessage `json:"upload"`
}

// savedForm is a saved upload with its secrets. plainUpload has no method MarshalJSON.
type savedForm struct {
	plainUpload
	SessionURI string      `json:"session_uri,omitempty"`     // "" with parts
	RawPath    []byte      `json:"source_path_raw,omitempty"` // the path, if it is not UTF-8, which JSON requires
	Parts      *savedParts `json:"parts,omitempty"`
}

type plainUpload Upload

// MarshalJSON always returns an error. Without the secret, a saved upload cannot be
// resumed; with the secret, it could get into logs. Use [Encode].
func (t Upload) MarshalJSON() ([]byte, error) {
	return nil, errors.New("cannot marshal an Upload, which has a secret: use state.Encode")
}

// Encode encodes a saved upload with its secret. Any reader of the result can write to
// the session. Store it where only the owner can read it (mode 0600). Encode
// returns an error for a saved upload that [Decode] would refuse.
func Encode(t *Upload) ([]byte, error) {
	if t == nil {
		return nil, errors.New("no saved upload")
	}
	if err := t.sound(); err != nil {
		return nil, fmt.Errorf("saved upload: %w", err)
	}
	s := savedForm{plainUpload: plainUpload(*t), SessionURI: secret.Reveal(t.URI), Parts: t.Parts.save()}
	if !utf8.ValidString(t.SourcePath) {
		s.RawPath = []byte(t.SourcePath)
	}
	saved, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(saved)
	out, err := json.Marshal(envelope{Version: version, SHA256: hex.EncodeToString(sum[:]), Upload: saved})
	if err != nil {
		return nil, err
	}
	return append(out, '\n'), nil
}

// Decode decodes the result of [Encode]. For other data the error wraps
// [ErrVersion] or [ErrCorrupt], and does not quote the data. The
// session URI of the result is not trusted until [Adopt] has checked it.
func Decode(data []byte) (*Upload, error) {
	// The version first: a newer one may use the other names for other things.
	var v struct {
		Version int `json:"v"`
	}
	if err := single(data, &v, false); err != nil {
		return nil, fmt.Errorf("%w: not the JSON of a saved upload", ErrCorrupt)
	}
	switch {
	case v.Version > version:
		return nil, fmt.Errorf("%w: version %d, this program knows %d", ErrVersion, v.Version, version)
	case v.Version != version:
		return nil, fmt.Errorf("%w: invalid version %d", ErrCorrupt, v.Version)
	}
	var e envelope
	if err := single(data, &e, false); err != nil {
		return nil, fmt.Errorf("%w: not the JSON of a saved upload", ErrCorrupt)
	}
	sum := sha256.Sum256(e.Upload)
	if e.SHA256 != hex.EncodeToString(sum[:]) {
		return nil, fmt.Errorf("%w: digest mismatch", ErrCorrupt)
	}
	var s savedForm
	if err := single(e.Upload, &s, false); err != nil {
		return nil, fmt.Errorf("%w: not the JSON of a saved upload", ErrCorrupt)
	}
	if single(data, &envelope{}, true) != nil || single(e.Upload, &savedForm{}, true) != nil {
		return nil, fmt.Errorf("%w: unknown field", ErrVersion)
	}
	t := Upload(s.plainUpload)
	t.URI, t.Parts = session.URI(secret.New(s.SessionURI)), s.Parts.restore()
	if len(s.RawPath) > 0 {
		t.SourcePath = string(s.RawPath)
	}
	if err := t.sound(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return &t, nil
}

// single decodes exactly one JSON value. If strict, it returns an error for
// unknown fields.
func single(data []byte, v any, strict bool) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF { // More returns false before a closing bracket
		return errors.New("more than one value")
	}
	return nil
}

// sound checks the invariants of a saved upload.
func (t *Upload) sound() error {
	size := t.ObjectSize()
	if size == -1 && (t.Gzip != nil || t.Spool != nil || t.Parts != nil) {
		size = math.MaxInt64
	}
	switch {
	case !ValidID(t.ID):
		return errors.New("invalid ID")
	case t.Spec.Validate() != nil:
		return errors.New("invalid destination")
	case t.Created.IsZero():
		return errors.New("incomplete")
	case t.Spool != nil:
		if t.SourcePath != "" || !t.URI.IsZero() && t.Parts != nil || t.Gzip != nil || t.MovedTo != "" || t.MovedFrom != "" || t.Spool.Dir == "" || !utf8.ValidString(t.Spool.Dir+t.SourceIdentity) {
			return errors.New("invalid stream")
		}
	case (t.SourcePath == "") == (t.SourceIdentity == "") || t.URI.IsZero() != (t.Parts != nil):
		return errors.New("incomplete")
	case t.Spec.Gzip != (t.Gzip != nil):
		return errors.New("invalid compression")
	case t.Gzip != nil && (t.Gzip.Size < 0 || t.Gzip.Source.Offset < 0 || t.Gzip.Source.Offset > t.Source.Size):
		return errors.New("invalid offsets of the compressed source")
	}
	for _, other := range []string{t.MovedTo, t.MovedFrom} {
		if other != "" && (!ValidID(other) || other == t.ID) {
			return errors.New("invalid ID of a move")
		}
	}
	if t.Parts != nil {
		if err := t.Parts.sound(size, t.Spool != nil || t.Gzip != nil); err != nil {
			return err
		}
	}
	return t.Session.sound(size)
}

// Adopt checks that the session URIs of t belong to the client's endpoint and the bucket of
// t. If not, the error wraps [session.ErrURIMismatch]. Call it before the first request with
// a URI.
func Adopt(client *session.Client, t *Upload) error {
	if t.Spool != nil && t.Parts == nil && t.URI.IsZero() {
		if t.Endpoint != client.Endpoint() {
			return fmt.Errorf("%w: the stream is for %s, the endpoint is %s", session.ErrURIMismatch, t.Endpoint, client.Endpoint())
		}
		return nil
	}
	if t.Parts == nil {
		return client.Adopt(t.URI, t.Spec.Bucket)
	}
	if t.Endpoint != client.Endpoint() { // the temporary objects are at that endpoint, even if no part has a session
		return fmt.Errorf("%w: the parts are at %s, the endpoint is %s", session.ErrURIMismatch, t.Endpoint, client.Endpoint())
	}
	if !t.Parts.Upload.IsZero() {
		return adoptMultipart(client.Endpoint(), t)
	}
	for i := range t.Parts.List {
		if uri := t.Parts.List[i].URI; !uri.IsZero() {
			if err := client.Adopt(uri, t.Spec.Bucket); err != nil {
				return err
			}
		}
	}
	return nil
}

// adoptMultipart checks that the URI of the multipart upload of t is that of its object.
func adoptMultipart(endpoint string, t *Upload) error {
	raw, spec := secret.Reveal(t.Parts.Upload), t.Spec
	if t.Parts.Prefix != "" { // it is to the next temporary object of a stream
		spec.Object = fmt.Sprintf("%s%04d", t.Parts.Prefix, len(t.Parts.List))
	}
	u, err := url.Parse(raw)
	if err != nil || u.Query().Get("uploadId") == "" || raw != multipart.URL(endpoint, spec, u.Query().Get("uploadId")) {
		return fmt.Errorf("%w: not a multipart upload of %s at %s", session.ErrURIMismatch, spec.URL(), endpoint)
	}
	return nil
}
