// Package contenttype returns the content type of a file by the extension of its name, for
// [gcsup/session.Spec].DefaultContentType. gcsup cp and the workers of gcsup-fleet use it.
package contenttype

import (
	"path/filepath"
	"strings"
)

// Of returns the content type for the extension of a name, in upper or lower case, or
// "" if it is unknown. The table is fixed: the tables of systems differ, but an
// upload must make the same object if another machine resumes it. If the type is "",
// the upload detects it from the first bytes.
func Of(name string) string { return types[strings.ToLower(filepath.Ext(name))] }

// types maps extensions to types registered at
// https://www.iana.org/assignments/media-types/media-types.xhtml.
// Text types have no charset, because it is not known.
var types = map[string]string{
	".7z":      "application/x-7z-compressed",
	".aac":     "audio/aac",
	".avi":     "video/x-msvideo",
	".avif":    "image/avif",
	".avro":    "application/avro",
	".bmp":     "image/bmp",
	".bz2":     "application/x-bzip2",
	".css":     "text/css",
	".csv":     "text/csv",
	".docx":    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".flac":    "audio/flac",
	".gif":     "image/gif",
	".gz":      "application/gzip",
	".htm":     "text/html",
	".html":    "text/html",
	".ico":     "image/vnd.microsoft.icon",
	".jar":     "application/java-archive",
	".jpeg":    "image/jpeg",
	".jpg":     "image/jpeg",
	".js":      "text/javascript",
	".json":    "application/json",
	".jsonl":   "application/jsonl",
	".log":     "text/plain",
	".m4a":     "audio/mp4",
	".md":      "text/markdown",
	".mjs":     "text/javascript",
	".mkv":     "video/matroska",
	".mov":     "video/quicktime",
	".mp3":     "audio/mpeg",
	".mp4":     "video/mp4",
	".oga":     "audio/ogg",
	".ogg":     "audio/ogg",
	".ogv":     "video/ogg",
	".otf":     "font/otf",
	".parquet": "application/vnd.apache.parquet",
	".pdf":     "application/pdf",
	".png":     "image/png",
	".pptx":    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".rtf":     "application/rtf",
	".svg":     "image/svg+xml",
	".tar":     "application/x-tar",
	".tgz":     "application/gzip",
	".tif":     "image/tiff",
	".tiff":    "image/tiff",
	".toml":    "application/toml",
	".tsv":     "text/tab-separated-values",
	".ttf":     "font/ttf",
	".txt":     "text/plain",
	".wasm":    "application/wasm",
	".wav":     "audio/wav",
	".webm":    "video/webm",
	".webp":    "image/webp",
	".woff":    "font/woff",
	".woff2":   "font/woff2",
	".xlsx":    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".xml":     "application/xml",
	".xz":      "application/x-xz",
	".yaml":    "application/yaml",
	".yml":     "application/yaml",
	".zip":     "application/zip",
	".zst":     "application/zstd",
}
