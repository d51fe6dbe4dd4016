package fakegcs

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gcsup/fakegcs/internal/blob"
)

// What a server reads from its directory when it starts.

// load reads the directory into s, which is empty and not yet in use.
func (d *disk) load(s *Server) error {
	l := loader{disk: d, s: s, blobs: map[string]*blob.Blob{}, made: map[string]*Object{}}
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
	blobs map[string]*blob.Blob // of the objects
	made  map[string]*Object    // by the upload that made it
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
// which it removes. Those are files: a bucket may be called "data.tmp".
func (d *disk) entries(dir string) ([]string, error) {
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
		content := l.blobOf(r)
		l.s.lastGeneration = max(l.s.lastGeneration, r.Object.Generation)
		if r.Upload != "" {
			l.made[r.Upload] = r.Object
		}
		v, g := &version{r.Object, content, r.Upload, r.Retained}, b.at(r.Object.Name)
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

// blobOf is the bytes of an object, with a reference.
func (l *loader) blobOf(r objectRecord) *blob.Blob {
	one := func(id string, size int64) *blob.Blob {
		if l.blobs[id] == nil {
			l.blobs[id] = l.disk.blob(id, size)
		}
		return l.blobs[id]
	}
	if r.Blob != "" {
		return one(r.Blob, r.Object.Size).Retain()
	}
	var pieces []*blob.Blob
	for _, p := range r.Pieces {
		pieces = append(pieces, one(p.Blob, p.Size))
	}
	return blob.Join(pieces).Retain()
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
		if o := l.made[id]; o != nil && u.State == active {
			u.State, u.Object, u.MD5State = final, o, nil
			if err := l.saveSession(&u.sessionRecord); err != nil { // the object's record may go
				return err
			}
		}
		if u.expired(l.s.now()) {
			if err := l.removeSession(id); err != nil {
				return err
			}
			continue
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
	u.blob = l.disk.blob(u.BlobID, committed).Retain()
	l.blobs[u.BlobID] = u.blob
	return l.rehash(u, committed)
}

// rehash continues the checksum from the last checkpoint. If the checkpoint has
// none that is usable, it starts over with the first byte.
func (l *loader) rehash(u *session, committed int64) error {
	from, withMD5 := u.Size, !l.s.opts.NoMD5
	sum, err := blob.ResumeDigest(&l.s.buffers, withMD5, uint32(u.Sum), u.MD5State)
	if err != nil || from == 0 || from > committed {
		from, sum = 0, blob.NewDigest(&l.s.buffers, withMD5)
	}
	u.sum = sum
	r, err := u.blob.Section(from, committed)
	if err != nil {
		return err
	}
	defer r.Close()
	defer u.sum.Idle()
	return blob.ReadQuanta(r, from, &l.s.buffers, func(p []byte) error {
		u.sum.Add(p, true)
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
		p.parts[n] = &version{Object: r.Object, blob: l.blobOf(r)}
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
