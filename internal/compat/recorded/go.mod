module gcsup/internal/compat/recorded

go 1.26.0

require gcsup v0.0.0

replace gcsup => ../../..
