-- Notes when each answer was complete and with which status, since wrk's own latencies are partly
-- invented. Rows of two doubles go through a buffer of whole rows into the file that is named as
-- argument; each thread begins with a row of status 0.
local ffi = require("ffi")
ffi.cdef [[
typedef struct { long seconds; long nanoseconds; } workbench_time;
typedef struct workbench_file workbench_file;
int clock_gettime(int clock, workbench_time *now);
workbench_file *fopen(const char *path, const char *mode);
int setvbuf(workbench_file *file, char *buffer, int mode, size_t size);
size_t fwrite(const void *data, size_t size, size_t count, workbench_file *file);
]]
local MONOTONIC, FULLY_BUFFERED, BUFFER = 1, 0, 65536
local now, row = ffi.new("workbench_time"), ffi.new("double[2]")
local file

local function note(status)
    ffi.C.clock_gettime(MONOTONIC, now)
    row[0] = tonumber(now.seconds) + tonumber(now.nanoseconds) * 1e-9
    row[1] = status
    ffi.C.fwrite(row, 16, 1, file)
end

function init(arguments)
    file = ffi.C.fopen(arguments[1], "ab")
    if file == nil then
        error("cannot write to " .. arguments[1])
    end
    ffi.C.setvbuf(file, nil, FULLY_BUFFERED, BUFFER)
    note(0)
end

function response(status)
    note(status)
end
