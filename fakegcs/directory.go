package fakegcs

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"time"

	"gcsup/fakegcs/internal/blob"
	"gcsup/fakegcs/internal/disk"
)

// ErrInUse reports that another server, in this process or another, uses the
// directory.
var ErrInUse = disk.ErrInUse

// objectRecord is the record of one generation in the directory.
type objectRecord struct {
	Object   *Object   `json:"object"`
	Blob     string    `json:"blob,omitempty"`
	Pieces   []piece   `json:"pieces,omitempty"` // the blobs of a composed object, in order; Blob is empty then
	Upload   string    `json:"upload,omitempty"` // ID of the upload that made it. That upload is finished, even if its own record shows another state
	Retained time.Time `json:"retained"`
}

// piece is one blob of a composed object.
type piece struct {
	Blob string `json:"blob"`
	Size int64  `json:"size"`
}

// UnmarshalJSON refuses a record without an object.
func (r *objectRecord) UnmarshalJSON(data []byte) error {
	type plain objectRecord
	if err := json.Unmarshal(data, (*plain)(r)); err != nil {
		return err
	}
	if r.Object == nil {
		return errors.New("it has no object")
	}
	return nil
}

// load reads the directory into a new server.
func (s *Server) load() error {
	l := loader{Dir: s.disk, store: s.store, sessions: s.sessions, multiparts: s.multiparts, blobs: map[string]*blob.Blob{}, made: map[string]*Object{}}
	if err := l.loadBuckets(); err != nil {
		return err
	}
	if err := l.loadSessions(); err != nil {
		return err
	}
	if err := l.loadMultiparts(); err != nil {
		return err
	}
	l.store.mu.Lock()
	l.store.unlock() // releases the bytes of objects that were replaced
	return l.Sweep(func(id string) bool { return l.blobs[id] != nil })
}

// loader reads a directory when a server starts.
type loader struct {
	*disk.Dir
	store      *store
	sessions   *sessions
	multiparts *multiparts
	blobs      map[string]*blob.Blob // blobs in use, by ID
	made       map[string]*Object    // objects by the ID of the upload that made them
}

func (l *loader) loadBuckets() error {
	names, err := l.Buckets()
	if err != nil {
		return err
	}
	for _, name := range names {
		b := newBucket(name, l.store.now())
		switch err := l.LoadBucket(name, &b.bucketRecord); {
		case errors.Is(err, fs.ErrNotExist):
			// The server was killed while it created or deleted the bucket. The
			// remaining files must not appear in a new bucket of that name.
			if err := l.RemoveBucket(name); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		if err := l.loadObjects(b); err != nil {
			return err
		}
		l.store.buckets[name] = b
	}
	return nil
}

func (l *loader) loadObjects(b *bucket) error {
	names, err := l.Objects(b.Name)
	if err != nil {
		return err
	}
	for _, name := range names {
		var r objectRecord
		if err := l.LoadObject(b.Name, name, &r); err != nil {
			return err
		}
		content := l.blobOf(r)
		l.store.lastGeneration = max(l.store.lastGeneration, r.Object.Generation)
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
	for _, name := range slices.Clone(b.sortedNames()) {
		g := b.objects[name]
		slices.SortFunc(g.old, byGeneration)
		slices.SortFunc(g.soft, byGeneration)
		if n := len(g.old); n > 0 && g.old[n-1].TimeDeleted.IsZero() {
			g.live, g.old = g.old[n-1], g.old[:n-1]
		}
		if err := l.finishReplace(b, g); err != nil {
			return err
		}
		if b.hierarchical() && g.live != nil { // the server may have been killed before it recorded the folders
			b.Folders, _ = b.Folders.with(foldersAbove(name), g.live.TimeCreated)
		}
		b.tidy(name)
	}
	b.retain()
	return nil
}

// blobOf returns the blob of an object, with one reference.
func (l *loader) blobOf(r objectRecord) *blob.Blob {
	one := func(id string, size int64) *blob.Blob {
		if l.blobs[id] == nil {
			l.blobs[id] = l.Blob(id, size)
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

// finishReplace retires the generations that a new one replaced, if the server was
// killed before it retired them.
func (l *loader) finishReplace(b *bucket, g *generations) error {
	for _, v := range slices.Clone(g.old) {
		if !v.TimeDeleted.IsZero() {
			continue
		}
		current := g.live
		g.live = v
		g.old = slices.DeleteFunc(g.old, func(o *version) bool { return o == v })
		l.store.mu.Lock()
		refused := l.store.retireLocked(b, v, l.store.now())
		l.store.mu.Unlock()
		g.live = current
		if refused != nil {
			return refused
		}
	}
	return nil
}

func (l *loader) loadSessions() error {
	ids, err := l.Sessions()
	if err != nil {
		return err
	}
	for _, id := range ids {
		u := &session{store: l.store}
		if err := l.LoadSession(id, &u.sessionRecord); err != nil {
			return err
		}
		if o := l.made[id]; o != nil && u.State == active {
			u.State, u.Object, u.MD5State = final, o, nil
			if err := l.SaveSession(id, &u.sessionRecord); err != nil { // the object, and its record, may be deleted later
				return err
			}
		}
		if u.expired(l.store.now()) {
			if err := l.RemoveSession(id); err != nil {
				return err
			}
			continue
		}
		if u.State == active {
			if err := l.restore(u); err != nil {
				return err
			}
		}
		l.sessions.byID[id] = u
	}
	return nil
}

// restore opens the bytes of an unfinished upload. It keeps the bytes up to the last
// checkpoint and multiples of 256 KiB after it, as if the request had been cut off.
func (l *loader) restore(u *session) error {
	size, err := l.BlobSize(u.BlobID)
	if err != nil {
		return err
	}
	committed := min(size, max(u.Size, size/granularity*granularity))
	if u.Total >= 0 {
		committed = min(committed, max(u.Total, 0))
	}
	if size > committed {
		if err := l.TruncateBlob(u.BlobID, committed); err != nil {
			return err
		}
	}
	u.blob = l.Blob(u.BlobID, committed).Retain()
	l.blobs[u.BlobID] = u.blob
	return l.rehash(u, committed)
}

// rehash computes the checksum from the last checkpoint, or from the first byte if
// the checkpoint has no usable checksum.
func (l *loader) rehash(u *session, committed int64) error {
	from, withMD5 := u.Size, !l.store.opts.NoMD5
	sum, err := blob.ResumeDigest(&l.store.buffers, withMD5, uint32(u.Sum), u.MD5State)
	if err != nil || from == 0 || from > committed {
		from, sum = 0, blob.NewDigest(&l.store.buffers, withMD5)
	}
	u.sum = sum
	r, err := u.blob.Section(from, committed)
	if err != nil {
		return err
	}
	defer r.Close()
	defer u.sum.Idle()
	return blob.ReadChunks(r, from, &l.store.buffers, func(p []byte) error {
		u.sum.Add(p, true)
		return nil
	})
}

func (l *loader) loadMultiparts() error {
	ids, err := l.Multiparts()
	if err != nil {
		return err
	}
	for _, id := range ids {
		var r multipartRecord
		err := l.LoadMultipart(id, &r)
		if errors.Is(err, fs.ErrNotExist) || err == nil && l.made[id] != nil { // the server was killed while it started or ended the upload
			if err := l.RemoveMultipart(id); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		p := newMultipart(r)
		if err := l.loadParts(p); err != nil {
			return err
		}
		l.multiparts.byID[id] = p
	}
	return nil
}

func (l *loader) loadParts(p *multipartUpload) error {
	numbers, err := l.Parts(p.ID)
	if err != nil {
		return err
	}
	for _, n := range numbers {
		var r objectRecord
		if err := l.LoadPart(p.ID, n, &r); err != nil {
			return err
		}
		p.parts[n] = &version{Object: r.Object, blob: l.blobOf(r)}
	}
	return nil
}
