// Package disk manages the directory of an emulator: the paths of records and bytes,
// and how they are replaced. The caller defines the content of a record.
package disk

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
	"strings"

	"gcsup/fakegcs/internal/blob"
)

// Dir is the directory of a server:
//
//	blobs/ID               the bytes of an object or of an unfinished upload
//	sessions/UPLOAD_ID     the record of an upload session
//	buckets/NAME/bucket    the configuration of a bucket
//	buckets/NAME/HASH-GEN  the record of one generation of an object; HASH is a hash of its name
//	parts/UPLOAD_ID/upload the record of an XML multipart upload
//	parts/UPLOAD_ID/N      the record of its part N
//	lock                   held while a server uses the directory
//
// Bytes are written straight to their blob as they arrive, and stay there when the
// upload becomes an object: the record makes the object. Records are JSON. A record
// is written to a temporary file, which is then renamed, so that a killed server
// leaves the old record or the new one. Nothing is fsynced: the directory survives a
// kill of the server at any moment, but not a crash of the machine.
//
// A nil Dir belongs to a server in memory: its Save and Remove methods do
// nothing.
type Dir struct {
	path string
	lock *os.File
}

// tempSuffix marks a record that is being written.
const tempSuffix = ".tmp"

// The names of the records of buckets and multipart uploads.
const (
	bucketRecord    = "bucket"
	multipartRecord = "upload"
)

// ErrInUse reports that another server, in this process or another, uses the
// directory.
var ErrInUse = errors.New("another server uses the directory")

// Open creates the directory as needed and locks it. If another server has it,
// the error wraps [ErrInUse].
func Open(path string) (*Dir, error) {
	d := &Dir{path: path}
	for _, sub := range []string{"blobs", "sessions", "buckets", "parts"} {
		if err := os.MkdirAll(filepath.Join(path, sub), 0o700); err != nil {
			return nil, err
		}
	}
	var err error
	if d.lock, err = lockFile(filepath.Join(path, "lock")); err != nil {
		return nil, err
	}
	return d, nil
}

// Close unlocks the directory.
func (d *Dir) Close() error {
	if d == nil || d.lock == nil {
		return nil
	}
	lock := d.lock
	d.lock = nil
	return unlockFile(lock)
}

func (d *Dir) blobPath(id string) string      { return filepath.Join(d.path, "blobs", id) }
func (d *Dir) sessionPath(id string) string   { return filepath.Join(d.path, "sessions", id) }
func (d *Dir) bucketPath(name string) string  { return filepath.Join(d.path, "buckets", name) }
func (d *Dir) multipartPath(id string) string { return filepath.Join(d.path, "parts", id) }

func (d *Dir) objectPath(bucket, name string, generation int64) string {
	hash := sha256.Sum256([]byte(name))
	return filepath.Join(d.bucketPath(bucket), hex.EncodeToString(hash[:16])+"-"+strconv.FormatInt(generation, 10))
}

// SaveBucket writes the record of a bucket.
func (d *Dir) SaveBucket(name string, record any) error {
	if d == nil {
		return nil
	}
	return saveFolder(d.bucketPath(name), bucketRecord, record)
}

// RemoveBucket deletes a bucket with the records of its objects.
func (d *Dir) RemoveBucket(name string) error {
	if d == nil {
		return nil
	}
	return removeFolder(d.bucketPath(name), bucketRecord)
}

// Buckets returns the names of the buckets. If the server was killed while it created
// or deleted a bucket, that bucket has no record.
func (d *Dir) Buckets() ([]string, error) { return entries(filepath.Join(d.path, "buckets")) }

// LoadBucket reads the record of a bucket. If there is none, the error is
// [fs.ErrNotExist].
func (d *Dir) LoadBucket(name string, record any) error {
	return load(filepath.Join(d.bucketPath(name), bucketRecord), record)
}

// SaveObject writes the record of one generation of an object.
func (d *Dir) SaveObject(bucket, name string, generation int64, record any) error {
	if d == nil {
		return nil
	}
	return save(d.objectPath(bucket, name, generation), record)
}

// RemoveObject deletes the record of one generation of an object.
func (d *Dir) RemoveObject(bucket, name string, generation int64) error {
	if d == nil {
		return nil
	}
	return remove(d.objectPath(bucket, name, generation))
}

// Objects returns the file names of the objects' records in a bucket, for
// [Dir.LoadObject].
func (d *Dir) Objects(bucket string) ([]string, error) {
	names, err := entries(d.bucketPath(bucket))
	if err != nil {
		return nil, err
	}
	records := names[:0]
	for _, name := range names {
		if name != bucketRecord {
			records = append(records, name)
		}
	}
	return records, nil
}

// LoadObject reads one of the records that [Dir.Objects] returned.
func (d *Dir) LoadObject(bucket, file string, record any) error {
	return load(filepath.Join(d.bucketPath(bucket), file), record)
}

// SaveSession writes the record of an upload session.
func (d *Dir) SaveSession(id string, record any) error {
	if d == nil {
		return nil
	}
	return withoutPath("save session", save(d.sessionPath(id), record))
}

// RemoveSession deletes the record of an upload session.
func (d *Dir) RemoveSession(id string) error {
	if d == nil {
		return nil
	}
	return withoutPath("remove session", remove(d.sessionPath(id)))
}

// Sessions returns the ids of the upload sessions.
func (d *Dir) Sessions() ([]string, error) { return entries(filepath.Join(d.path, "sessions")) }

// LoadSession reads the record of an upload session.
func (d *Dir) LoadSession(id string, record any) error { return load(d.sessionPath(id), record) }

// withoutPath returns err without the path. The path of a session contains its
// secret, and errors are logged.
func withoutPath(op string, err error) error {
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

// SaveMultipart writes the record of an XML multipart upload.
func (d *Dir) SaveMultipart(id string, record any) error {
	if d == nil {
		return nil
	}
	return saveFolder(d.multipartPath(id), multipartRecord, record)
}

// RemoveMultipart deletes an XML multipart upload with the records of its parts.
func (d *Dir) RemoveMultipart(id string) error {
	if d == nil {
		return nil
	}
	return removeFolder(d.multipartPath(id), multipartRecord)
}

// Multiparts returns the ids of the XML multipart uploads. If the server was killed
// while it created or deleted one, that one has no record.
func (d *Dir) Multiparts() ([]string, error) { return entries(filepath.Join(d.path, "parts")) }

// LoadMultipart reads the record of an XML multipart upload. If there is none,
// the error is [fs.ErrNotExist].
func (d *Dir) LoadMultipart(id string, record any) error {
	return load(filepath.Join(d.multipartPath(id), multipartRecord), record)
}

// SavePart writes the record of part n of an XML multipart upload.
func (d *Dir) SavePart(id string, n int, record any) error {
	if d == nil {
		return nil
	}
	return save(filepath.Join(d.multipartPath(id), strconv.Itoa(n)), record)
}

// Parts returns the numbers of the parts of an XML multipart upload.
func (d *Dir) Parts(id string) ([]int, error) {
	names, err := entries(d.multipartPath(id))
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil { // else it is the record of the upload
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

// LoadPart reads the record of part n of an XML multipart upload.
func (d *Dir) LoadPart(id string, n int, record any) error {
	return load(filepath.Join(d.multipartPath(id), strconv.Itoa(n)), record)
}

// Blob returns the blob id, of which size bytes count.
func (d *Dir) Blob(id string, size int64) *blob.Blob { return blob.NewFile(id, d.blobPath(id), size) }

// BlobSize returns the size of the file of a blob. It is 0 if there is none.
func (d *Dir) BlobSize(id string) (int64, error) {
	info, err := os.Stat(d.blobPath(id))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// TruncateBlob cuts the file of a blob to size bytes.
func (d *Dir) TruncateBlob(id string, size int64) error { return os.Truncate(d.blobPath(id), size) }

// Sweep deletes the blobs that are not in use.
func (d *Dir) Sweep(inUse func(id string) bool) error {
	ids, err := entries(filepath.Join(d.path, "blobs"))
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !inUse(id) {
			if err := remove(d.blobPath(id)); err != nil {
				return err
			}
		}
	}
	return nil
}

// save replaces the file at path by record in JSON. If it fails, it leaves nothing behind,
// because the disk may be full.
func save(path string, record any) error {
	data, err := json.Marshal(record)
	if err != nil {
		return err
	}
	if err = os.WriteFile(path+tempSuffix, data, 0o600); err == nil {
		err = os.Rename(path+tempSuffix, path)
	}
	if err != nil {
		_ = os.Remove(path + tempSuffix)
	}
	return err
}

func load(path string, record any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, record); err != nil {
		return fmt.Errorf("%s: not a record of this program (%w); remove the file to continue without it", path, err)
	}
	return nil
}

// remove deletes a file. A missing file is no error.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func saveFolder(path, name string, record any) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return save(filepath.Join(path, name), record)
}

// removeFolder deletes a directory. It deletes the record first: a directory without
// it is treated as a leftover.
func removeFolder(path, record string) error {
	if err := remove(filepath.Join(path, record)); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// entries returns the names in a directory, and deletes what a killed save left
// behind. It deletes only files, because a bucket may have the name "data.tmp".
func entries(dir string) ([]string, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range list {
		if strings.HasSuffix(e.Name(), tempSuffix) && !e.IsDir() {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return nil, err
			}
			continue
		}
		names = append(names, e.Name())
	}
	return names, nil
}
