package fakegcs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"path"
	"strings"
)

// seed creates the buckets and objects of the options. A bucket that exists, because the
// directory has it, is left as it is.
func (s *store) seed() error {
	isNew := map[string]bool{}
	create := func(b Bucket) error {
		s.mu.Lock()
		old := s.buckets[b.Name] != nil
		s.mu.Unlock()
		if old {
			return nil
		}
		if _, err := s.createBucket(b.Name, b.fields(), ""); err != nil {
			return fmt.Errorf("bucket %q: %w", b.Name, err)
		}
		isNew[b.Name] = true
		return nil
	}
	for _, b := range s.opts.Buckets {
		if isNew[b.Name] {
			return fmt.Errorf("option Buckets: two buckets have the name %q", b.Name)
		}
		if err := create(b); err != nil {
			return err
		}
	}
	for _, o := range s.opts.Objects {
		if err := create(Bucket{Name: o.Bucket}); err != nil {
			return err
		}
		if !isNew[o.Bucket] {
			continue
		}
		if _, err := s.put(&o.Object, bytes.NewReader(o.Content)); err != nil {
			return fmt.Errorf("object %q in bucket %q: %w", o.Name, o.Bucket, err)
		}
	}
	if s.opts.Seed == nil {
		return nil
	}
	return fs.WalkDir(s.opts.Seed, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("option Seed: %w", err)
		}
		bucket, object, below := strings.Cut(name, "/")
		switch {
		case name == ".":
			return nil
		case strings.HasPrefix(bucket, "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !below && !d.IsDir():
			return fmt.Errorf("option Seed: %s is not a folder: the folders at the top are the buckets", name)
		case !below:
			if err := create(Bucket{Name: bucket}); err != nil {
				return fmt.Errorf("option Seed: %w", err)
			}
			if !isNew[bucket] {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		}
		return s.putFile(bucket, object, name)
	})
}

// putFile makes an object of a file of the option Seed.
func (s *store) putFile(bucket, object, name string) (err error) {
	f, err := s.opts.Seed.Open(name)
	if err != nil {
		return fmt.Errorf("option Seed: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("option Seed: %s is not a regular file", name) // also a link to a folder
	}
	o := &Object{Bucket: bucket, Name: object, ContentType: mime.TypeByExtension(path.Ext(object))}
	if _, err := s.put(o, f); err != nil {
		return fmt.Errorf("option Seed: %s: %w", name, err)
	}
	return nil
}
