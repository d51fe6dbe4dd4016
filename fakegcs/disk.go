package fakegcs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"gcsup/fakegcs/internal/blob"
)

// disk is the directory of a server:
//
//	blobs/ID               the bytes of an object or of an unfinished upload
//	sessions/UPLOAD_ID     the record of an upload session
//	buckets/NAME/bucket    the configuration of a bucket
//	parts/UPLOAD_ID/upload the record of an XML multipart upload
//	parts/UPLOAD_ID/N      the record of its part N
//	lock                   held while a server uses the directory
//	buckets/NAME/HASH-GEN  the record of one generation of an object; HASH is of its name, which is inside
//
// Bytes are written straight to their blob as they arrive, and stay there when
// the upload becomes an object: what makes the object is its record. Records
// are JSON, written beside their place and renamed into it, so that a killed
// server leaves the old or the new one. Nothing is fsynced: the directory
// survives the server's death at any moment, not the machine's.
//
// A nil disk is a server in memory: its methods do nothing.
type disk struct {
	dir  string
	lock *os.File
}

// objectRecord is the record of one generation.
type objectRecord struct {
	Object   *Object   `json:"object"`
	Blob     string    `json:"blob,omitempty"`
	Pieces   []piece   `json:"pieces,omitempty"` // or these blobs, one after the other
	Upload   string    `json:"upload,omitempty"` // what made it: that is over then, whatever its own record says
	Retained time.Time `json:"retained"`
}

// piece is a blob of which an object is made.
type piece struct {
	Blob string `json:"blob"`
	Size int64  `json:"size"`
}

const tempSuffix = ".tmp"

// ErrInUse tells that another server, in this process or another, has the
// directory.
var ErrInUse = errors.New("another server uses the directory")

func openDisk(dir string) (*disk, error) {
	d := &disk{dir: dir}
	for _, sub := range []string{"blobs", "sessions", "buckets", "parts"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, err
		}
	}
	var err error
	if d.lock, err = lockFile(filepath.Join(dir, "lock")); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *disk) close() error {
	if d == nil || d.lock == nil {
		return nil
	}
	lock := d.lock
	d.lock = nil
	return lock.Close()
}

// write replaces the file at path by v in JSON.
func (d *disk) write(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+tempSuffix, data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+tempSuffix, path)
}

// remove deletes a file; that it isn't there is no error.
func (d *disk) remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (d *disk) blobPath(id string) string { return filepath.Join(d.dir, "blobs", id) }
func (d *disk) sessionPath(id string) string {
	return filepath.Join(d.dir, "sessions", id)
}
func (d *disk) bucketPath(name string) string { return filepath.Join(d.dir, "buckets", name) }

func (d *disk) objectPath(o *Object) string {
	hash := sha256.Sum256([]byte(o.Name))
	return filepath.Join(d.bucketPath(o.Bucket), hex.EncodeToString(hash[:16])+"-"+strconv.FormatInt(o.Generation, 10))
}

func (d *disk) saveBucket(b *bucket) error {
	if d == nil {
		return nil
	}
	if err := os.MkdirAll(d.bucketPath(b.Name), 0o700); err != nil {
		return err
	}
	return d.write(filepath.Join(d.bucketPath(b.Name), "bucket"), b.bucketResource)
}

func (d *disk) removeBucket(name string) error {
	if d == nil {
		return nil
	}
	return d.removeFolder(d.bucketPath(name), "bucket")
}

// removeFolder deletes what is in a directory with the record that makes it
// count, and that record first: without it the rest is no more.
func (d *disk) removeFolder(path, record string) error {
	if err := d.remove(filepath.Join(path, record)); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

func (d *disk) saveObject(v *version) error {
	if d == nil {
		return nil
	}
	r := objectRecord{Object: v.Object, Blob: v.blob.ID(), Upload: v.upload, Retained: v.retained}
	for _, p := range v.blob.Pieces() {
		r.Pieces = append(r.Pieces, piece{p.ID(), p.Size()})
	}
	return d.write(d.objectPath(v.Object), r)
}

func (d *disk) removeObject(o *Object) error {
	if d == nil {
		return nil
	}
	return d.remove(d.objectPath(o))
}

func (d *disk) saveSession(r *sessionRecord) error {
	if d == nil {
		return nil
	}
	return pathless("save session", d.write(d.sessionPath(r.ID), r))
}

func (d *disk) removeSession(id string) error {
	if d == nil {
		return nil
	}
	return pathless("remove session", d.remove(d.sessionPath(id)))
}

// pathless is err without the path, which for a session is its secret: errors
// are logged.
func pathless(op string, err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		err = link.Err
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", op, err)
}

func (d *disk) partsPath(id string) string { return filepath.Join(d.dir, "parts", id) }

func (d *disk) saveParts(p *partsUpload) error {
	if d == nil {
		return nil
	}
	if err := os.MkdirAll(d.partsPath(p.ID), 0o700); err != nil {
		return err
	}
	return d.write(filepath.Join(d.partsPath(p.ID), "upload"), partsRecord{ID: p.ID, Meta: p.Meta, Initiated: p.Initiated})
}

func (d *disk) savePart(id string, n int, part *version) error {
	if d == nil {
		return nil
	}
	return d.write(filepath.Join(d.partsPath(id), strconv.Itoa(n)), objectRecord{Object: part.Object, Blob: part.blob.ID()})
}

func (d *disk) removeParts(id string) error {
	if d == nil {
		return nil
	}
	return d.removeFolder(d.partsPath(id), "upload")
}

// newBlob makes room for the bytes of an upload, with one reference.
func (s *Server) newBlob() *blob.Blob {
	switch {
	case s.opts.Discard:
		return blob.NewDiscarding().Retain()
	case s.disk == nil:
		return blob.NewMemory(s.memory.freed).Retain()
	}
	return s.disk.blob(hex.EncodeToString(randomBytes(16)), 0).Retain()
}

// blob is the file of that id, of which size bytes count.
func (d *disk) blob(id string, size int64) *blob.Blob {
	return blob.NewFile(id, d.blobPath(id), size)
}
