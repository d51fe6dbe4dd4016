package upload

import (
	"fmt"
	"io/fs"
	"maps"
	"strconv"

	"gcsup/session"
)

// validate checks the Spec, and finds the secret of its encryption key. With SkipExisting
// it adds the precondition.
func (j *job) validate() error {
	if j.u.invalid != nil {
		return j.u.invalid
	}
	if j.rule == SkipExisting {
		j.spec.IfGenerationMatch, j.spec.NoClobber = new(int64), true
		j.setSpec(j.spec)
	}
	if err := j.spec.Validate(); err != nil {
		return err
	}
	if err := j.u.opts.Parallel.checkSpec(j.spec); err != nil {
		return err
	}
	key, err := j.encryptionKey(j.spec.EncryptionKey)
	j.spec.EncryptionKey = key
	return err
}

// encryptionKey returns key with its secret, which may be one of
// [Options.EncryptionKeys].
func (j *job) encryptionKey(key session.EncryptionKey) (session.EncryptionKey, error) {
	if key.IsZero() || key.HasSecret() {
		return key, nil
	}
	for _, k := range j.u.opts.EncryptionKeys {
		if k.HasSecret() && k.SHA256() == key.SHA256() {
			return k, nil
		}
	}
	return key, fmt.Errorf("%w: its SHA-256 is %s", session.ErrEncryptionKey, key.SHA256())
}

// unlock returns the Spec of a saved upload with its encryption key, which is want if
// that is set.
func (j *job) unlock(saved Spec, want session.EncryptionKey) (Spec, error) {
	if want.HasSecret() && want.SHA256() == saved.EncryptionKey.SHA256() {
		saved.EncryptionKey = want
	}
	key, err := j.encryptionKey(saved.EncryptionKey)
	saved.EncryptionKey = key
	return saved, err
}

// detect sets the default content type, if it depends on the first bytes of the source,
// which head returns. It does nothing if there are none: the upload reports an error of
// reading.
func (j *job) detect(head func() []byte) {
	if j.u.opts.DetectContentType == nil || j.spec.ContentType != "" || j.spec.DefaultContentType != "" {
		return
	}
	if first := head(); len(first) > 0 {
		j.spec.DefaultContentType = j.u.opts.DetectContentType(first)
	}
}

// withPOSIX returns spec with the attributes of a file in its metadata.
func withPOSIX(spec Spec, info fs.FileInfo) Spec {
	if info == nil {
		return spec
	}
	spec = withMetadata(spec, session.FileModTimeKey, info.ModTime().Unix())
	if p, ok := posixOf(info); ok {
		spec.Metadata[session.FileAccessTimeKey] = strconv.FormatInt(p.accessed, 10)
		spec.Metadata[session.FileUIDKey] = strconv.FormatUint(uint64(p.uid), 10)
		spec.Metadata[session.FileGIDKey] = strconv.FormatUint(uint64(p.gid), 10)
		spec.Metadata[session.FileModeKey] = fmt.Sprintf("%03o", info.Mode().Perm())
	}
	return spec
}

// withMetadata returns spec with a number in a copy of its metadata.
func withMetadata(spec Spec, key string, n int64) Spec {
	metadata := make(map[string]string, len(spec.Metadata)+1)
	maps.Copy(metadata, spec.Metadata)
	metadata[key] = strconv.FormatInt(n, 10)
	spec.Metadata = metadata
	return spec
}

// posix has the attributes of a file for which fs.FileInfo has no method.
type posix struct {
	accessed int64 // seconds since 1970
	uid, gid uint32
}
