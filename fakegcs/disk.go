package fakegcs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
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
	Blob     string    `json:"blob"`
	Upload   string    `json:"upload,omitempty"` // what made it: that is over then, whatever its own record says
	Retained time.Time `json:"retained"`
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
	return d.write(d.objectPath(v.Object), objectRecord{v.Object, v.blob.id, v.upload, v.retained})
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
	return d.write(d.sessionPath(r.ID), r)
}

func (d *disk) removeSession(id string) error {
	if d == nil {
		return nil
	}
	return d.remove(d.sessionPath(id))
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
	return d.write(filepath.Join(d.partsPath(id), strconv.Itoa(n)), objectRecord{Object: part.Object, Blob: part.blob.id})
}

func (d *disk) removeParts(id string) error {
	if d == nil {
		return nil
	}
	return d.removeFolder(d.partsPath(id), "upload")
}

// newBlob makes room for the bytes of an upload, with one reference.
func (s *Server) newBlob() (*sharedBlob, *apiError) {
	b := &sharedBlob{}
	switch {
	case s.opts.Discard:
		b.blob = &nullBlob{}
	case s.disk == nil:
		b.blob = &memBlob{}
	default:
		b = s.disk.blob(hex.EncodeToString(randomBytes(16)), 0)
	}
	return b.retain(), nil
}

// blob is the file of that id, of which size bytes count.
func (d *disk) blob(id string, size int64) *sharedBlob {
	path := d.blobPath(id)
	f := &fileBlob{path: path, n: size}
	return &sharedBlob{id: id, blob: f, remove: func() error { _ = f.close(); return d.remove(path) }}
}

// load reads the directory into s, which is empty and not yet in use.
func (d *disk) load(s *Server) error {
	l := loader{disk: d, s: s, blobs: map[string]*sharedBlob{}, made: map[string]*Object{}}
	if err := l.buckets(); err != nil {
		return err
	}
	if err := l.sessions(); err != nil {
		return err
	}
	if err := l.parts(); err != nil {
		return err
	}
	return l.sweep()
}

type loader struct {
	*disk
	s     *Server
	blobs map[string]*sharedBlob // of the objects
	made  map[string]*Object     // by the upload that made it
}

func readRecord(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: not a record of this program (%w); remove the file to go on without it", path, err)
	}
	return nil
}

func readObject(path string) (objectRecord, error) {
	var r objectRecord
	err := readRecord(path, &r)
	if err == nil && r.Object == nil {
		err = fmt.Errorf("%s: not the record of an object; remove the file to go on without it", path)
	}
	return r, err
}

// entries are the names in a directory without leftovers of a killed write,
// which it removes.
func (d *disk) entries(dir string) ([]string, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range list {
		if strings.HasSuffix(e.Name(), tempSuffix) {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return nil, err
			}
			continue
		}
		names = append(names, e.Name())
	}
	return names, nil
}

func (l *loader) buckets() error {
	names, err := l.entries(filepath.Join(l.dir, "buckets"))
	if err != nil {
		return err
	}
	for _, name := range names {
		b := newBucket(name, l.s.now())
		switch err := readRecord(filepath.Join(l.bucketPath(name), "bucket"), &b.bucketResource); {
		case errors.Is(err, fs.ErrNotExist):
			// Killed while it was created or deleted. What is left must not
			// come back in a new bucket of that name.
			if err := l.removeBucket(name); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		if err := l.objects(b); err != nil {
			return err
		}
		l.s.buckets[name] = b
	}
	return nil
}

func (l *loader) objects(b *bucket) error {
	names, err := l.entries(l.bucketPath(b.Name))
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == "bucket" {
			continue
		}
		r, err := readObject(filepath.Join(l.bucketPath(b.Name), name))
		if err != nil {
			return err
		}
		blob := l.blobs[r.Blob]
		if blob == nil {
			blob = l.disk.blob(r.Blob, r.Object.Size)
			l.blobs[r.Blob] = blob
		}
		l.s.lastGeneration = max(l.s.lastGeneration, r.Object.Generation)
		if r.Upload != "" {
			l.made[r.Upload] = r.Object
		}
		v, g := &version{r.Object, blob.retain(), r.Upload, r.Retained}, b.at(r.Object.Name)
		switch {
		case !v.SoftDeleteTime.IsZero():
			b.addSoft(v)
		default:
			g.old = append(g.old, v)
		}
	}
	byGeneration := func(a, b *version) int { return cmp.Compare(a.Generation, b.Generation) }
	for _, name := range slices.Clone(b.names) {
		g := b.objects[name]
		slices.SortFunc(g.old, byGeneration)
		slices.SortFunc(g.soft, byGeneration)
		if n := len(g.old); n > 0 && g.old[n-1].TimeDeleted.IsZero() {
			g.live, g.old = g.old[n-1], g.old[:n-1]
		}
		if err := l.finishReplace(b, g); err != nil {
			return err
		}
		b.tidy(name)
	}
	b.retain()
	return nil
}

// finishReplace does what a killed server had not yet done with the generation
// that a new one replaced.
func (l *loader) finishReplace(b *bucket, g *generations) error {
	for _, v := range slices.Clone(g.old) {
		if !v.TimeDeleted.IsZero() {
			continue
		}
		current := g.live
		g.live = v
		g.old = slices.DeleteFunc(g.old, func(o *version) bool { return o == v })
		refused := l.s.retireLocked(b, v, l.s.now())
		g.live = current
		if refused != nil {
			return refused
		}
	}
	return nil
}

func (l *loader) sessions() error {
	ids, err := l.entries(filepath.Join(l.dir, "sessions"))
	if err != nil {
		return err
	}
	for _, id := range ids {
		u := &session{}
		if err := readRecord(l.sessionPath(id), &u.sessionRecord); err != nil {
			return err
		}
		if u.expired(l.s.now()) {
			if err := l.removeSession(id); err != nil {
				return err
			}
			continue
		}
		if o := l.made[id]; o != nil && u.State == active {
			u.State, u.Object = final, o
		}
		if u.State == active {
			if err := l.restore(u); err != nil {
				return err
			}
		}
		l.s.sessions[id] = u
	}
	return nil
}

// restore brings back the bytes of an unfinished upload: those that the last
// checkpoint counted and whole quanta after it, as when a request is cut off.
func (l *loader) restore(u *session) error {
	size := int64(0)
	if info, err := os.Stat(l.blobPath(u.BlobID)); err == nil {
		size = info.Size()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	committed := min(size, max(u.Size, size/quantum*quantum))
	if u.Total >= 0 {
		committed = min(committed, max(u.Total, 0))
	}
	if size > committed {
		if err := os.Truncate(l.blobPath(u.BlobID), committed); err != nil {
			return err
		}
	}
	u.blob = l.disk.blob(u.BlobID, committed).retain()
	l.blobs[u.BlobID] = u.blob
	return l.rehash(u, committed)
}

// rehash takes the checksum up where the checkpoint left it.
func (l *loader) rehash(u *session, committed int64) error {
	u.sum = newDigest(&l.s.buffers, !l.s.opts.NoMD5)
	from := u.Size
	if from <= committed {
		u.sum.crc = u.Sum
		if u.sum.md5 != nil && u.sum.resume(u.MD5State) != nil {
			from = 0
		}
	}
	if from > committed || from == 0 {
		from, u.sum = 0, newDigest(&l.s.buffers, !l.s.opts.NoMD5)
	}
	r, err := u.blob.section(from, committed)
	if err != nil {
		return err
	}
	defer r.Close()
	defer u.sum.idle()
	return readQuanta(r, from, &l.s.buffers, func(p []byte) error {
		u.sum.add(p, true)
		return nil
	})
}

func (l *loader) parts() error {
	ids, err := l.entries(filepath.Join(l.dir, "parts"))
	if err != nil {
		return err
	}
	for _, id := range ids {
		var r partsRecord
		err := readRecord(filepath.Join(l.partsPath(id), "upload"), &r)
		if errors.Is(err, fs.ErrNotExist) || err == nil && l.made[id] != nil { // killed while it was begun or ended
			if err := l.removeParts(id); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		p := &partsUpload{ID: r.ID, Meta: r.Meta, Initiated: r.Initiated, parts: map[int]*version{}}
		if err := l.partsOf(p); err != nil {
			return err
		}
		l.s.uploads[id] = p
	}
	return nil
}

func (l *loader) partsOf(p *partsUpload) error {
	names, err := l.entries(l.partsPath(p.ID))
	if err != nil {
		return err
	}
	for _, name := range names {
		n, err := strconv.Atoi(name)
		if err != nil { // the record of the upload
			continue
		}
		path := filepath.Join(l.partsPath(p.ID), name)
		r, err := readObject(path)
		if err != nil {
			return err
		}
		blob := l.disk.blob(r.Blob, r.Object.Size).retain()
		l.blobs[r.Blob] = blob
		p.parts[n] = &version{Object: r.Object, blob: blob}
	}
	return nil
}

// sweep removes the blobs that nothing refers to.
func (l *loader) sweep() error {
	ids, err := l.entries(filepath.Join(l.dir, "blobs"))
	if err != nil {
		return err
	}
	for _, id := range ids {
		if l.blobs[id] == nil {
			if err := l.remove(l.blobPath(id)); err != nil {
				return err
			}
		}
	}
	return nil
}
