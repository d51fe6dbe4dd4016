package upload

import (
	"cmp"

	"gcsup/upload/internal/parts"
)

// AutoParts sends a file in parts, like [InParts], if several connections may be
// faster than one. It chooses the number of connections: it begins with one, and adds
// more as long as the total rate rises. All files of an Uploader share the
// connections.
//
// maxConnections bounds their number, at most 256; 0 is 32. There is at most one for
// each 4 MiB of [Options].Memory. The buffers of each connection take about 1 MiB. A
// multipart upload also keeps a part of at least 16 MiB for each connection. It reads
// parts that do not fit into Memory twice.
//
// A file is sent over one connection, and the event [Undivided] has the reason, if
//
//   - the file has less than 150 MiB (without the event),
//   - the service answers within 3 ms, and the first 8 MiB are sent at 64 MiB/s or more,
//   - a rate limit of at most 16 MiB/s is set, but not 0,
//   - several connections were no faster for a file in the last ten minutes,
//   - the caller may not read the object at the destination, or
//   - no [JoinBy] supports its settings. For [ByCompose], the bucket and the permissions must
//     also be readable and suit temporary objects.
func AutoParts(maxConnections int) *Parts {
	p := InParts(cmp.Or(maxConnections, parts.AutoConnections), parts.AutoMin)
	p.options.Auto, p.options.MinFile = true, parts.AutoMinFile
	return p
}

// lowLimit is a rate limit, in bytes per second, that a single connection reaches.
const lowLimit = 16 << 20

// low reports whether a single connection reaches the limit. A limit of 0 is not low,
// because the limit after the pause is not known.
func (l *RateLimit) low() bool {
	if l == nil {
		return false
	}
	limit := l.Limit()
	return limit > 0 && limit <= lowLimit
}
