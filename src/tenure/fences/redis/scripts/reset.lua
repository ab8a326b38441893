-- Put a mark aside, damaged or not, and keep it with the moment and the reason (R38).
--
-- KEYS[1] the fence
-- KEYS[2] the list of what was put aside
-- ARGV[1] the reason

local mark = redis.pcall('HMGET', KEYS[1], 'job', 'generation', 'sequence')
if redis.call('DEL', KEYS[1]) == 1 then
  local now = redis.call('TIME')
  redis.call('RPUSH', KEYS[2], cjson.encode({
    job = mark[1] or '',
    generation = mark[2] or '',
    sequence = mark[3] or '',
    at = now[1] .. '.' .. string.format('%06d', now[2]),
    reason = ARGV[1],
  }))
end
