package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"gcsup/chunk"
)

// Lifetime of a session: the service drops it a week after it was started.
// https://cloud.google.com/storage/docs/resumable-uploads#introduction
const Lifetime = 7 * 24 * time.Hour

// Token is what another process needs to go on with an upload, or another
// machine that has a copy of the source (see Uploader.Import of package upload).
type Token struct {
	ID       string    // ours: made of source and destination, no secret
	Endpoint string    // scheme and host
	Spec     Spec      // what the session was started with
	Created  time.Time // when the session was started

	URI URI // the session; a secret, see Encode

	SourcePath string         // absolute
	Source     chunk.Identity // when the session began

	Committed   int64              // what the server had acknowledged when this was saved
	HighWater   int64              // no byte from here on was ever sent in this session
	Checkpoints []chunk.Checkpoint // CRC32C of prefixes of the source, ascending
	Restarts    int                // sessions that were lost before this one

	// RejectedAt is 1 + the offset at which the service refused data in this
	// session, which still existed then. 0: it never did.
	RejectedAt int64
}

// Expires returns when the service drops the session, for people to read. The local
// clock may be wrong, so nothing must be deleted for it: the service knows.
func (t *Token) Expires() time.Time { return t.Created.Add(Lifetime) }

// Checkpoint is the furthest known checksum of at most offset bytes.
func (t *Token) Checkpoint(offset int64) chunk.Checkpoint {
	var best chunk.Checkpoint
	for _, c := range t.Checkpoints {
		if c.Offset <= offset && c.Offset >= best.Offset {
			best = c
		}
	}
	return best
}

const tokenVersion = 1

// envelope is the saved form. The digest is over the exact bytes of the Token,
// so that a flipped bit or a cut file is noticed and never sent anywhere. It
// is no signature: who can write the file can also make the digest.
type envelope struct {
	Version int             `json:"v"`
	SHA256  string          `json:"sha256"`
	Token   json.RawMessage `json:"token"`
}

type savedToken struct {
	ID          string             `json:"id"`
	Endpoint    string             `json:"endpoint"`
	Spec        Spec               `json:"spec"`
	Created     time.Time          `json:"created"`
	SessionURI  string             `json:"session_uri"`
	SourcePath  string             `json:"source_path"`
	RawPath     []byte             `json:"source_path_raw,omitempty"` // the path, when JSON cannot hold it because it is not UTF-8
	Source      chunk.Identity     `json:"source"`
	Committed   int64              `json:"committed"`
	HighWater   int64              `json:"high_water"`
	Checkpoints []chunk.Checkpoint `json:"checkpoints"`
	Restarts    int                `json:"restarts,omitempty"`
	RejectedAt  int64              `json:"rejected_at,omitempty"`
}

// MarshalJSON returns an error. The text of a Token without its secret cannot be
// resumed, and with it would get into logs: see [Encode].
func (t Token) MarshalJSON() ([]byte, error) {
	return nil, errors.New("a Token is not written as plain JSON; use session.Encode, and keep the result secret")
}

// Encode writes a Token out with its secret. Any reader of the result can write
// to the session: keep it where only the owner can read (mode 0600). It refuses a
// Token that [Decode] would refuse.
func Encode(t *Token) ([]byte, error) {
	if err := t.sound(); err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	s := savedToken{
		ID: t.ID, Endpoint: t.Endpoint, Spec: t.Spec, Created: t.Created, SessionURI: t.URI.reveal(),
		SourcePath: t.SourcePath, Source: t.Source,
		Committed: t.Committed, HighWater: t.HighWater, Checkpoints: t.Checkpoints, Restarts: t.Restarts, RejectedAt: t.RejectedAt,
	}
	if !utf8.ValidString(t.SourcePath) {
		s.RawPath = []byte(t.SourcePath)
	}
	token, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(token)
	out, err := json.Marshal(envelope{Version: tokenVersion, SHA256: hex.EncodeToString(sum[:]), Token: token})
	if err != nil {
		return nil, err
	}
	return append(out, '\n'), nil
}

// Decode reads what Encode wrote. For anything else the error wraps
// [ErrTokenVersion] or [ErrDamaged], and quotes nothing of the content. The
// session URI of the result is not yet trusted: see [Client.Adopt].
func Decode(data []byte) (*Token, error) {
	var e envelope
	if err := single(data, &e, false); err != nil {
		return nil, fmt.Errorf("%w: not the JSON of a saved upload", ErrDamaged)
	}
	switch {
	case e.Version > tokenVersion:
		return nil, fmt.Errorf("%w: version %d, this program knows %d", ErrTokenVersion, e.Version, tokenVersion)
	case e.Version != tokenVersion:
		return nil, fmt.Errorf("%w: there is no version %d", ErrDamaged, e.Version)
	}
	sum := sha256.Sum256(e.Token)
	if e.SHA256 != hex.EncodeToString(sum[:]) {
		return nil, fmt.Errorf("%w: its content is not what was saved", ErrDamaged)
	}
	var s savedToken
	if err := single(e.Token, &s, false); err != nil {
		return nil, fmt.Errorf("%w: not the JSON of a saved upload", ErrDamaged)
	}
	if single(data, &envelope{}, true) != nil || single(e.Token, &savedToken{}, true) != nil {
		return nil, fmt.Errorf("%w: it has a field that this program does not know", ErrTokenVersion)
	}
	t := &Token{
		ID: s.ID, Endpoint: s.Endpoint, Spec: s.Spec, Created: s.Created, URI: newURI(s.SessionURI),
		SourcePath: s.SourcePath, Source: s.Source,
		Committed: s.Committed, HighWater: s.HighWater, Checkpoints: s.Checkpoints, Restarts: s.Restarts, RejectedAt: s.RejectedAt,
	}
	if len(s.RawPath) > 0 {
		t.SourcePath = string(s.RawPath)
	}
	if err := t.sound(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return t, nil
}

// single reads one JSON value, and refuses unknown fields if strict.
func single(data []byte, v any, strict bool) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF { // More takes a bracket for an end
		return errors.New("more than one value")
	}
	return nil
}

// sound checks what every Token that was saved fulfils.
func (t *Token) sound() error {
	size := t.Source.Size
	switch {
	case !validID(t.ID):
		return errors.New("bad id")
	case t.Spec.Validate() != nil:
		return errors.New("bad destination")
	case t.SourcePath == "" || t.URI.IsZero() || t.Created.IsZero():
		return errors.New("incomplete")
	case t.Committed < 0 || t.Committed > t.HighWater || t.HighWater > size || t.Restarts < 0 || t.RejectedAt < 0:
		return errors.New("impossible offsets")
	}
	last := int64(-1)
	for _, c := range t.Checkpoints {
		if c.Offset <= last || c.Offset > size {
			return errors.New("impossible checkpoints")
		}
		last = c.Offset
	}
	return nil
}

// Adopt checks that the Token's session belongs to this client's endpoint and
// the Token's bucket, before anything is sent to it. The error wraps
// [ErrForeignURI].
func (c *Client) Adopt(t *Token) error {
	_, err := c.adopt(t.URI.reveal(), t.Spec.Bucket)
	return err
}
