package upload

import "gcsup/upload/internal/source"

// compress sets whether the file is compressed while it is sent. It returns the
// compressed content, or nil.
func (j *job) compress(on bool) *source.Gzip {
	zipped, _ := j.source.(*source.Gzip)
	switch {
	case on && zipped == nil:
		zipped = source.NewGzip(j.file, j.u.compressor, j.u.memory, j.u.opts.Window)
		j.source = zipped
		j.progress.source.Store(zipped.Offsets())
		j.requests.pos.size.Store(-1)
		j.expect.size = nil // it is the size of the file, which was checked
	case !on && zipped != nil:
		zipped.Stop()
		j.source = j.file
		j.progress.source.Store(nil)
		j.requests.pos.size.Store(j.file.Total())
		return nil
	}
	return zipped
}
